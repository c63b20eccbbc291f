"""One host on its way through a run: what is known of it now, and how it came to be so."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from provision.controls.model import Disrupts, Status
from provision.converge.result import Outcome, State
from provision.plan.asked import ALL, Asked
from provision.report.model import UNREACHED, HostRun, Judgement

if TYPE_CHECKING:
    from provision.converge.result import HostResult
    from provision.errors import Failure
    from provision.plan.model import Plan
    from provision.verify.result import Check

    from .look import Look

DRIVER = "nvidia_driver"


@dataclass
class Traveller:
    """The mutable state of one host in a run; `finished()` makes the report's record of it."""

    name: str
    resume: str
    asked: Asked = ALL
    local: bool = False
    """True for the machine that we run on: it cannot be looked at from outside, nor restarted."""
    look: Look | None = None
    plan: Plan | None = None
    planned: list[str] = field(default_factory=list)
    passes: list[HostResult] = field(default_factory=list)
    checks: tuple[Check, ...] = ()
    failure: Failure | None = None
    reached: bool = False
    reboot: str = ""
    ended: str = ""
    """The state that somebody else brought it to than a converge of its plan; empty where none did."""

    @property
    def goes_on(self) -> bool:
        """Whether there is something to run on it now."""
        return self.failure is None and not self.reboot and bool(self.plan and self.plan.steps)

    @property
    def ran(self) -> frozenset[str]:
        return frozenset(role for result in self.passes for role in result.roles_done)

    @property
    def state(self) -> str:
        """The state that the host is in now, by its contract name."""
        if self.ended:
            return self.ended
        if not self.reached:
            return UNREACHED if self.failure else str(State.UNTOUCHED)
        last = self.passes[-1] if self.passes else None
        if last is None:
            return (
                str(State.UNTOUCHED)
                if self.failure or self.plan is None or not self.plan.empty
                else str(State.DONE)
            )
        if last.outcome is not Outcome.DONE:
            earlier = any(result.changed for result in self.passes[:-1])
            return str(State.PARTIAL if earlier else last.state)
        return str(State.PARTIAL if self.failure or self.reboot or not self._plan_done else State.DONE)

    @property
    def _plan_done(self) -> bool:
        return bool(self.plan and self.plan.empty)

    def _judgement(self) -> Judgement | None:
        """What is wrong with the host; where only some roles were asked for, what is wrong of theirs."""
        found = self.look.judgement if self.look else None
        if found is None or not self.asked.only:
            return found
        return replace(found, findings=tuple(f for f in found.findings if f.role in self.asked.only))

    def left_failing(self) -> list[str]:
        """Controls that a role which ran should have mended and did not."""
        if self.look is None:
            return []
        return [
            f"{f.control} (expected {f.expected}, is {f.actual})"
            for f in self.look.findings
            if f.role in self.ran and f.status is Status.FAIL and not f.waived
        ]

    def waits_for_reboot(self) -> str:
        """What only a reboot will make true, of the roles that ran; empty where nothing is left to one."""
        if self.look is None:
            return ""
        if DRIVER in self.ran and (why := self.look.stale_driver):
            return why
        left = [
            f.title
            for f in self.look.findings
            if f.role in self.ran
            and f.status is Status.FAIL
            and f.disrupts is Disrupts.REBOOT
            and not f.waived
        ]
        return "; ".join(left)

    def finished(self) -> HostRun:
        state = self.state
        return HostRun(
            host=self.name,
            state=state,
            planned=tuple(dict.fromkeys(self.planned)),
            passes=tuple(self.passes),
            judgement=self._judgement(),
            checks=self.checks,
            trouble=self.failure.reason if self.failure else None,
            resume=self.resume if state == State.PARTIAL else "",
            reboot=self.reboot,
            stopped=self.failure.exit_code if self.failure and not self.passes else 0,
        )
