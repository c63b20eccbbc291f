"""From findings to a plan: which roles mend them, what waits for a later pass, what refuses the whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..controls.model import Finding, Judged, Status
from ..planners import wanted_for
from .changes import changes
from .model import Plan, Step

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

MENDABLE = (Status.FAIL, Status.WARN)


def make(
    host: str,
    judged: Judged,
    findings: Sequence[Finding],
    order: Sequence[str],
    always: Collection[str] = (),
) -> Plan:
    """The next pass over a host. `order` is the one order of roles (playbooks/site.yml), or part of it.

    Roles that it does not have are none of this plan's. Those of `always` run where no finding names them,
    unless they would refuse.

    A fail or warn of a control that names a role puts that role in the plan. An unknown that is only
    due to a failing control it needs is left to a later pass; any other unknown of a control with a
    role refuses the plan, as does a planner that refuses: half of a set is worse than none.
    """
    mended = [f for f in findings if f.role in order and f.status in MENDABLE and not f.waived]
    waiting, blind = _unknowns(findings, {f.control for f in mended})
    named = {f.role for f in mended}
    roles = [role for role in order if role in named or role in always]
    refused = _unseen([f for f in blind if f.role in order])
    steps = []
    for role in roles:
        wanted = wanted_for(role, judged.facts, judged.profile, judged.stack)
        if wanted.refused and role not in named:
            continue
        if wanted.refused:
            refused.append(f"{role}: {wanted.refused}")
        steps.append(Step(role, tuple(f for f in mended if f.role == role), changes(wanted, judged.facts)))
    later = tuple(role for role in order if role not in roles and any(f.role == role for f in waiting))
    if refused:
        return Plan(host, refused=tuple(refused))
    return Plan(host, tuple(steps), later)


def _unseen(blind: Sequence[Finding]) -> list[str]:
    """Each reason once, with all the controls that it keeps from an answer: one broken file keeps many."""
    reasons: dict[str, list[str]] = {}
    for finding in blind:
        reasons.setdefault(finding.actual, []).append(finding.control)
    return [
        f"{', '.join(controls)} {'is' if len(controls) == 1 else 'are'} unknown: {reason}"
        for reason, controls in reasons.items()
    ]


def _unknowns(findings: Sequence[Finding], mended: Collection[str]) -> tuple[list[Finding], list[Finding]]:
    """Unknowns that a role should end: those that wait for a control to be mended, and the others.

    The wait may lead through controls that no role mends: clocks wait for a driver that answers, and
    that waits for one that is installed.
    """
    troubled = [f for f in findings if f.status in (Status.FAIL, Status.UNKNOWN)]
    caused = set(mended)
    while more := {f.control for f in troubled if caused & set(f.needs)} - caused:
        caused |= more
    unknowns = [f for f in troubled if f.role and f.status is Status.UNKNOWN]
    return [f for f in unknowns if f.control in caused], [f for f in unknowns if f.control not in caused]
