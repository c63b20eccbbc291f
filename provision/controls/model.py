"""What a control is and what it finds. One control judges one rule: (facts, profile, stack) -> Finding."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from ..facts.known import Unknown

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..catalog.stack import Stack
    from ..facts import Facts
    from ..profile.model import Profile


class Status(StrEnum):
    PASS = "pass"
    WARN = "warn"
    FAIL = "fail"
    UNKNOWN = "unknown"
    SKIP = "skip"


class Severity(StrEnum):
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class Disrupts(StrEnum):
    """What mending a finding disturbs on the host."""

    NOTHING = "nothing"
    SERVICE = "service"
    CONTAINERS = "containers"
    REBOOT = "reboot"


@dataclass(frozen=True)
class Judged:
    """What a control may look at: one host's facts, what it is meant to be, and the set that fits it."""

    facts: Facts
    profile: Profile
    stack: Stack | Unknown


@dataclass(frozen=True)
class Verdict:
    """What a control's function returns; the control's own data completes it to a Finding."""

    status: Status
    expected: str = ""
    actual: str = ""
    evidence: tuple[str, ...] = ()
    advice: str = ""
    mendable: bool = True
    """False where only a person on the host can mend it: the control's role is then left out of it."""


@dataclass(frozen=True)
class Finding:
    """One judged rule on one host (audit report of the contract)."""

    control: str
    status: Status
    severity: Severity
    required: bool
    title: str
    expected: str
    actual: str
    evidence: tuple[str, ...]
    advice: str
    role: str | None
    disrupts: Disrupts
    needs: tuple[str, ...] = field(default=(), repr=False)
    waived: str | None = None

    def as_dict(self) -> dict[str, Any]:
        return {
            "control": self.control,
            "status": str(self.status),
            "severity": str(self.severity),
            "required": self.required,
            "title": self.title,
            "expected": self.expected,
            "actual": self.actual,
            "evidence": list(self.evidence),
            "advice": self.advice,
            "role": self.role,
            "disrupts": str(self.disrupts),
            "waived": self.waived,
        }


@dataclass(frozen=True)
class Control:
    """A rule with its name, weight and mending.

    `role` is the role that mends a fail or warn of this control; None where no role of ours can.
    `needs` names the controls whose failing can be the only cause of an unknown here (a driver that
    is not installed has no clocks to read): such an unknown is planned as a later pass.
    """

    name: str
    judge: Callable[[Judged], Verdict]
    title: str
    severity: Severity
    required: bool
    role: str | None
    disrupts: Disrupts
    needs: tuple[str, ...]

    def find(self, host: Judged) -> Finding:
        verdict = self.judge(host)
        return Finding(
            control=self.name,
            status=verdict.status,
            severity=self.severity,
            required=self.required,
            title=self.title,
            expected=verdict.expected,
            actual=verdict.actual,
            evidence=verdict.evidence,
            advice=verdict.advice,
            role=self.role if verdict.mendable else None,
            disrupts=self.disrupts,
            needs=self.needs,
        )


CONTROLS: dict[str, Control] = {}


def control(
    name: str,
    title: str,
    *,
    severity: Severity = Severity.MEDIUM,
    required: bool = False,
    role: str | None = None,
    disrupts: Disrupts = Disrupts.NOTHING,
    needs: tuple[str, ...] = (),
) -> Callable[[Callable[[Judged], Verdict]], Callable[[Judged], Verdict]]:
    """Register a pure function as the control `name` (`subject.rule`)."""

    def register(judge: Callable[[Judged], Verdict]) -> Callable[[Judged], Verdict]:
        if name in CONTROLS:
            raise ValueError(f"control {name} is defined twice")
        CONTROLS[name] = Control(name, judge, title, severity, required, role, disrupts, needs)
        return judge

    return register


def passed(actual: str = "", *, expected: str = "", evidence: tuple[str, ...] = ()) -> Verdict:
    return Verdict(Status.PASS, expected, actual, evidence)


def failed(
    expected: str, actual: str, *, advice: str = "", evidence: tuple[str, ...] = (), mendable: bool = True
) -> Verdict:
    return Verdict(Status.FAIL, expected, actual, evidence, advice, mendable)


def warned(
    expected: str, actual: str, *, advice: str = "", evidence: tuple[str, ...] = (), mendable: bool = True
) -> Verdict:
    return Verdict(Status.WARN, expected, actual, evidence, advice, mendable)


def skipped(reason: str) -> Verdict:
    return Verdict(Status.SKIP, actual=reason)


def unknown(why: Unknown | str, *, expected: str = "", advice: str = "") -> Verdict:
    reason = why.reason if isinstance(why, Unknown) else why
    return Verdict(Status.UNKNOWN, expected, reason, advice=advice)


def not_ours(verdict: Verdict) -> Verdict:
    """The same verdict; what is wrong or unknown is of somebody else's making, and no role mends it."""
    fine = verdict.status in (Status.PASS, Status.SKIP)
    return verdict if fine else replace(verdict, mendable=False)


def with_required(finding: Finding, required: bool) -> Finding:
    return replace(finding, required=required)
