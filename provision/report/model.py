"""What reports are made of: one host judged, and one host after a run."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..controls.model import Finding, Status
from ..facts.known import Unknown

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ..catalog.stack import Stack
    from ..converge.result import HostResult
    from ..verify.result import Check

UNREACHED = "unreached"
REVERTED = "reverted"


@dataclass(frozen=True)
class Judgement:
    """One host as an audit sees it.

    `unreached` says why it could not be judged; findings are then empty, and `unreached_code` is the exit
    code that this gives. `without_root` says why what only root may read is unknown; empty where it was read.
    """

    host: str
    findings: tuple[Finding, ...] = ()
    stack: Stack | Unknown | None = None
    unreached: str | None = None
    unreached_code: int = 3
    without_root: str = ""
    traits: Mapping[str, str] = field(default_factory=dict)
    """What other hosts of its group have alike (controls.alike)."""

    @property
    def counts(self) -> dict[str, int]:
        """How many findings have each status, all five named."""
        found = Counter(f.status for f in self.findings)
        return {str(status): found[status] for status in Status}

    def as_dict(self) -> dict[str, Any]:
        document: dict[str, Any] = {
            "host": self.host,
            "reached": self.unreached is None,
            "stack": None if self.stack is None or isinstance(self.stack, Unknown) else self.stack.as_dict(),
            "counts": self.counts,
            "findings": [f.as_dict() for f in self.findings],
        }
        if self.unreached is not None:
            document["unreached"] = self.unreached
        if self.without_root:
            document["without_root"] = self.without_root
        return document


@dataclass(frozen=True)
class HostRun:
    """One host after a run that was to change it.

    `state` is one of the states that a host can be left in: untouched, done, reverted, partial, or
    unreached. `passes` holds what each converge came to. `judgement` is made after the last of them;
    None where no recording could be made any more. `resume` is the command that goes on from here.
    `stopped` is the exit code of what kept it from being converged at all; 0 where nothing did.
    """

    host: str
    state: str
    planned: tuple[str, ...] = ()
    passes: tuple[HostResult, ...] = ()
    judgement: Judgement | None = None
    checks: tuple[Check, ...] = ()
    trouble: str | None = None
    resume: str = ""
    reboot: str = ""
    """Why the host has to be rebooted before it is what it is meant to be; empty where it has not."""
    stopped: int = 0

    def as_dict(self) -> dict[str, Any]:
        return {
            "host": self.host,
            "state": self.state,
            "planned": list(self.planned),
            "passes": [p.as_dict() for p in self.passes],
            "judgement": self.judgement.as_dict() if self.judgement else None,
            "checks": [c.as_dict() for c in self.checks],
            "trouble": self.trouble,
            "resume": self.resume,
            "reboot": self.reboot,
        }


@dataclass(frozen=True)
class Run:
    """A whole run over one or many hosts. `taken` is its start in UTC (ISO 8601), `seconds` its length."""

    command: str
    profile: str
    taken: str
    seconds: float
    hosts: tuple[HostRun, ...]
    interrupted: bool = False
    directory: str = ""


@dataclass(frozen=True)
class Audit:
    """A whole audit. `drift` lists what differs between hosts that should be alike."""

    profile: str
    taken: str
    hosts: tuple[Judgement, ...]
    drift: tuple[Mapping[str, Any], ...] = field(default=())


RANK = {Status.FAIL: 0, Status.UNKNOWN: 1, Status.WARN: 2, Status.SKIP: 3, Status.PASS: 4}
SEVERITY_RANK = {"high": 0, "medium": 1, "low": 2}


def worst_first(findings: Iterable[Finding]) -> list[Finding]:
    """By status, then severity, then name; a waived one ranks with what passes."""
    return sorted(
        findings,
        key=lambda f: (
            RANK[Status.PASS] if f.waived else RANK[f.status],
            not f.required,
            SEVERITY_RANK[str(f.severity)],
            f.control,
        ),
    )
