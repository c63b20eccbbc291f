"""How commit_confirm tells what came of a change, in a task's result."""

from __future__ import annotations

import getpass
import os
import socket
from typing import Any

STATES = {
    "untouched": "the host is untouched",
    "reverted": "the host is as it was before",
    "done": "the change is confirmed and in place",
    "reverting": "not everything could be put back yet; the host tries again at its next boot",
    "armed": "unless it was confirmed, the host has put itself back",
}


def failed(state: str, why: str) -> dict[str, Any]:
    """The truth about a change that did not come about, and why it did not."""
    return {
        "failed": True,
        "changed": state in ("done", "reverting"),
        "state": state,
        "msg": f"{why}: {STATES[state]}",
    }


def refused(why: str) -> dict[str, Any]:
    return {"failed": True, "changed": False, "msg": f"refused: {why}", "state": "untouched"}


def message(answer: dict[str, Any]) -> str:
    return str(answer.get("msg") or answer.get("module_stderr") or "the host's side ended without an answer")


def holder() -> str:
    """Who makes the change, for whoever finds the host armed."""
    return f"{getpass.getuser()}@{socket.gethostname()} (process {os.getppid()})"


def diff(difference: dict[str, Any]) -> dict[str, Any]:
    """One file's difference as Ansible shows it."""

    def header(mode: str | None) -> str:
        return f"{difference['path']} ({'mode ' + mode if mode else 'absent'})"

    return {
        "before_header": header(difference["mode_before"]),
        "after_header": header(difference["mode"]),
        "before": difference["before"] or "",
        "after": difference["after"] or "",
    }
