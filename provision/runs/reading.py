"""Reading what a host keeps for us and nobody but root may see: its snapshots, and what came by us."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from provision.errors import Failure, Unreached
from provision.facts.snapshots import Kept, kept
from provision.recording.program import program
from provision.recording.remote import from_output

if TYPE_CHECKING:
    from collections.abc import Sequence

    from provision.recording.model import Answer, Recording

    from .fleet import Line

_ROOT = "/var/lib/gpu-provision/snapshots"
_BROUGHT = "/var/lib/gpu-provision/packages/brought.json"
_LIMIT = 16 << 20  # bytes; a host with three thousand packages has half a megabyte
_SECONDS = 30.0


def read(line: Line, names: Sequence[str]) -> tuple[dict[str, Kept], tuple[str, ...]]:
    """The snapshots of these names, and the packages that came by us. Raises Failure where one is missing."""
    if wrong := [name for name in names if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name)]:
        raise Failure(f"{wrong[0]!r} is no name of a snapshot", host=line.name)
    paths = {name: f"{_ROOT}/{name}/snapshot.json" for name in names}
    recording = _ask(line, [*paths.values(), _BROUGHT])
    found = {}
    for name, path in paths.items():
        answer = recording.answer(path)
        if answer.rc != 0:
            raise Failure(f"there is no snapshot {name}: {_why(answer)}", host=line.name)
        try:
            found[name] = kept(answer.stdout)
        except ValueError as e:
            raise Failure(f"the snapshot {name} cannot be read: {e}", host=line.name) from e
    return found, _brought(recording.answer(_BROUGHT), line.name)


def _brought(answer: Answer, host: str) -> tuple[str, ...]:
    if answer.rc != 0:
        return ()  # nothing came by us yet
    try:
        return tuple(json.loads(answer.stdout)["names"])
    except (ValueError, KeyError, TypeError) as e:
        raise Failure(f"{_BROUGHT} cannot be read: {e}", host=host) from e


def _ask(line: Line, paths: Sequence[str]) -> Recording:
    questions = {
        "items": [
            {"name": path, "argv": ["cat", path], "seconds": _SECONDS, "limit": _LIMIT, "root": True}
            for path in paths
        ],
        "seconds": _SECONDS * 2,
    }
    sent = program(sudo_password=line.session.sudo_password, questions=questions)
    done = line.session.run(sent.argv, sent.stdin, _SECONDS * 3)
    recording = from_output(done.stdout, done.stderr, sent, host=line.name)
    if not recording.as_root:
        raise Unreached("only root may look at the snapshots of a host", host=line.name)
    return recording


def _why(answer: Answer) -> str:
    said = answer.stderr.strip().splitlines()
    return answer.silence or (said[-1] if said else f"cat ended with {answer.rc}")
