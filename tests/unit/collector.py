"""Runs the collector as a host runs it, with questions of a test's own."""

from __future__ import annotations

import sys
from typing import Any

from provision.recording.program import Program, answer, program
from provision.transport import child


def collected(
    *items: dict[str, Any], seconds: float = 20.0, python: str = sys.executable
) -> dict[str, dict[str, Any]]:
    """The answers to `items`, by name; each gets a limit of 5 s where it names none."""
    asked = [{"seconds": 5.0, **item} for item in items]
    sent = program(sudo=False, questions={"items": asked, "seconds": seconds, "workers": 4})
    done = child.run([python, "-I", "-S", "-B", "-"], sent.stdin, 60)
    found: dict[str, dict[str, Any]] = answer(done.stdout, sent.token)["items"]
    return found


def launched(sent: Program, env: dict[str, str] | None = None) -> child.Completed:
    """The whole way over the launcher, on this machine."""
    return child.run(list(sent.argv), sent.stdin, 60, env)


def shell(name: str, text: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "argv": ["sh", "-c", text], **more}
