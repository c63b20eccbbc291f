"""What a converge came to on each host, folded from its events."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from .events import Event, Kind, TaskStatus

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

# Actions that only look or compute: a host whose run ended in one of these before any change is untouched.
READING = frozenset(
    {
        "assert",
        "debug",
        "fail",
        "gpu_provision.host.snapshot",
        "gpu_provision.host.recording",
        "include_role",
        "include_tasks",
        "meta",
        "set_fact",
        "stat",
        "validate_argument_spec",
    }
)
SNAPSHOT = "gpu_provision.host.snapshot"


class Outcome(StrEnum):
    DONE = "done"
    FAILED = "failed"
    UNREACHABLE = "unreachable"
    INTERRUPTED = "interrupted"


class State(StrEnum):
    """The state that a converge left a host in."""

    UNTOUCHED = "untouched"
    DONE = "done"
    REVERTED = "reverted"
    PARTIAL = "partial"


@dataclass(frozen=True)
class HostResult:
    """One host after a converge.

    `role` and `task` name the step in which it ended where it did not end well. `seconds` is the
    time from its first task to its last result, or to the end of the run that left it in a task.
    """

    host: str
    outcome: Outcome
    state: State
    roles: tuple[str, ...]
    roles_done: tuple[str, ...]
    role: str | None
    task: str | None
    message: str
    ok: int
    changed: int
    skipped: int
    failed: int
    seconds: float

    @property
    def executions(self) -> int:
        """How many tasks ran on the host, skipped ones left out."""
        return self.ok + self.changed + self.failed

    def as_dict(self) -> dict[str, Any]:
        return {
            "host": self.host,
            "outcome": str(self.outcome),
            "state": str(self.state),
            "roles": list(self.roles),
            "roles_done": list(self.roles_done),
            "role": self.role,
            "task": self.task,
            "message": self.message,
            "tasks": {"ok": self.ok, "changed": self.changed, "skipped": self.skipped, "failed": self.failed},
            "seconds": round(self.seconds, 1),
        }


@dataclass(frozen=True)
class ConvergeResult:
    """All hosts of one converge. `interrupted` where it was asked to stop before its end."""

    hosts: Mapping[str, HostResult]
    interrupted: bool
    seconds: float
    diffs: Mapping[str, str] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        return not self.interrupted and all(h.outcome is Outcome.DONE for h in self.hosts.values())

    def as_dict(self) -> dict[str, Any]:
        return {
            "interrupted": self.interrupted,
            "seconds": round(self.seconds, 1),
            "hosts": [h.as_dict() for h in self.hosts.values()],
        }


@dataclass
class _Host:
    roles: tuple[str, ...]
    entered: list[str] = field(default_factory=list)
    counts: dict[TaskStatus, int] = field(default_factory=lambda: dict.fromkeys(TaskStatus, 0))
    role: str | None = None
    task: str | None = None
    trouble: Event | None = None
    first: float | None = None
    last: float = 0.0
    kept: int = 0
    """Changes that only keep what the host is: with nothing else changed it is untouched."""
    in_flight: str | None = None
    """The action of the task that runs now."""


class Fold:
    """Takes events one by one; `result` gives what they came to. Keys are the names that events use."""

    def __init__(self, roles: Mapping[str, Iterable[str]]) -> None:
        self._hosts = {name: _Host(tuple(r)) for name, r in roles.items()}
        self.began = False
        """True once any event came: Ansible read its inventory and playbook."""
        self._ended = False
        self._failed: frozenset[str] = frozenset()
        self._diffs: dict[str, list[str]] = {}

    def add(self, event: Event) -> None:
        self.began = True
        if event.kind is Kind.END:
            self._ended, self._failed = True, frozenset(event.failed_hosts)
        host = self._hosts.get(event.host or "")
        if host is None:
            return
        host.first = event.time if host.first is None else host.first
        host.last = event.time
        if event.kind is Kind.TASK:
            self._enter(host, event)
        elif event.kind is Kind.RESULT and event.status is not None:
            self._end_task(host, event)
        elif event.kind is Kind.DIFF:
            self._diffs.setdefault(event.host or "", []).append(f"{event.task}\n{event.message}")

    def _enter(self, host: _Host, event: Event) -> None:
        host.in_flight = event.action or ""
        # A role that is not planned for this host is walked through with every task skipped.
        if event.role in host.roles or event.role is None:
            host.role, host.task = event.role, event.task
            if event.role and event.role not in host.entered:
                host.entered.append(event.role)

    def _end_task(self, host: _Host, event: Event) -> None:
        assert event.status is not None
        host.in_flight = None
        if event.status is TaskStatus.SKIPPED and event.role not in host.roles:
            return
        host.counts[event.status] += 1
        host.kept += event.status is TaskStatus.CHANGED and event.action == SNAPSHOT
        if event.status in (TaskStatus.FAILED, TaskStatus.UNREACHABLE) and not event.ignored:
            host.trouble = event

    def result(
        self, names: Mapping[str, str], *, interrupted: bool, seconds: float, now: float
    ) -> ConvergeResult:
        """`names` leads from the names in events to the hosts' own; `now` is in seconds since the epoch.

        A host of which no end is known counts as interrupted.
        """
        for host in self._hosts.values():
            if host.in_flight is not None and not self._ended:
                host.last = max(host.last, now)
        return ConvergeResult(
            hosts={names[key]: self._host_result(key, names[key], host) for key, host in self._hosts.items()},
            interrupted=interrupted,
            seconds=seconds,
            diffs={names[key]: "\n".join(parts) for key, parts in self._diffs.items()},
        )

    def _host_result(self, key: str, name: str, host: _Host) -> HostResult:
        trouble = host.trouble if key in self._failed or not self._ended else None
        if trouble is not None:
            unreachable = trouble.status is TaskStatus.UNREACHABLE
            outcome = Outcome.UNREACHABLE if unreachable else Outcome.FAILED
        else:
            outcome = Outcome.DONE if self._ended else Outcome.INTERRUPTED
        done = outcome is Outcome.DONE
        step = trouble or host
        return HostResult(
            host=name,
            outcome=outcome,
            state=State.DONE if done else self._state(host, trouble),
            roles=host.roles,
            roles_done=host.roles if done else tuple(r for r in host.entered if r != step.role),
            role=None if done else step.role,
            task=None if done else step.task,
            message="" if done else trouble.message if trouble else _interrupted(host),
            ok=host.counts[TaskStatus.OK],
            changed=host.counts[TaskStatus.CHANGED],
            skipped=host.counts[TaskStatus.SKIPPED],
            failed=host.counts[TaskStatus.FAILED],
            seconds=host.last - host.first if host.first is not None else 0.0,
        )

    def _state(self, host: _Host, trouble: Event | None) -> State:
        """Untouched only where nothing that could change the host began and ended in an unknown way."""
        if host.counts[TaskStatus.CHANGED] > host.kept:
            return State.PARTIAL
        if trouble and trouble.left in (State.UNTOUCHED, State.REVERTED):
            return State(trouble.left)
        open_action = trouble.action if trouble else host.in_flight
        never_there = (
            trouble is not None
            and trouble.status is TaskStatus.UNREACHABLE
            and not host.counts[TaskStatus.OK]
        )
        reading = open_action is None or open_action.removeprefix("ansible.builtin.") in READING
        return State.UNTOUCHED if never_there or reading else State.PARTIAL


def _interrupted(host: _Host) -> str:
    if host.first is None:
        return "stopped before its first task"
    where = f"{host.role}: {host.task}" if host.role else str(host.task)
    return f"stopped while this ran: {where}" if host.in_flight is not None else f"stopped after: {where}"
