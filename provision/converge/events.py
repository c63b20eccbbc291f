"""What happens while Ansible runs: one event a line, as the callback plugin events writes it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Kind(StrEnum):
    PLAY = "play"
    ROLE = "role"
    """A host enters a role."""
    TASK = "task"
    """A host begins a task."""
    RESULT = "result"
    """A task ended on a host; `status` says how."""
    RETRY = "retry"
    """A task failed and is tried again, `attempt` of `of`."""
    DIFF = "diff"
    """What a task changed or, in check mode, would change: a unified diff in `message`."""
    STOPPING = "stopping"
    """The run was asked to stop; `message` says what is waited for."""
    STOPPED = "stopped"
    """Ended on request, between two tasks."""
    ERROR = "error"
    END = "end"


class TaskStatus(StrEnum):
    OK = "ok"
    CHANGED = "changed"
    FAILED = "failed"
    SKIPPED = "skipped"
    UNREACHABLE = "unreachable"


@dataclass(frozen=True)
class Event:
    """One event. `time` is in seconds since the epoch, `seconds` how long the task took on this host."""

    kind: Kind
    time: float
    host: str | None = None
    role: str | None = None
    task: str | None = None
    action: str | None = None
    status: TaskStatus | None = None
    seconds: float | None = None
    message: str = ""
    ignored: bool = False
    attempt: int | None = None
    of: int | None = None
    left: str | None = None
    """Of a failure in a module of ours: the state that it says to have left the host in."""
    failed_hosts: tuple[str, ...] = ()
    """Of an `end`: hosts with a failure that nothing rescued, or out of reach."""

    @classmethod
    def from_line(cls, line: str) -> Event | None:
        """Read one line; None where it is no event known here (the last line of a killed process, too)."""
        try:
            raw: Any = json.loads(line)
            status = raw.get("status")
            return cls(
                kind=Kind(raw["kind"]),
                time=float(raw["time"]),
                host=raw.get("host"),
                role=raw.get("role"),
                task=raw.get("task") or raw.get("name"),
                action=raw.get("action"),
                status=TaskStatus(status) if status else None,
                seconds=raw.get("seconds"),
                message=str(raw.get("message", "")),
                ignored=bool(raw.get("ignored")),
                attempt=raw.get("attempt"),
                of=raw.get("of"),
                left=raw.get("left"),
                failed_hosts=tuple(raw.get("failed_hosts", ())),
            )
        except (ValueError, KeyError, TypeError, AttributeError):
            return None
