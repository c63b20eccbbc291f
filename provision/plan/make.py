"""From findings to a plan: which roles mend them, what waits for a later pass, what refuses the whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..controls.model import Finding, Judged, Status
from ..planners import wanted_for
from .changes import changes
from .model import Plan, Step

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

MENDABLE = (Status.FAIL, Status.WARN)


def make(host: str, judged: Judged, findings: Sequence[Finding], order: Sequence[str]) -> Plan:
    """The next pass over a host. `order` is the one order of roles (playbooks/site.yml).

    A fail or warn of a control that names a role puts that role in the plan. An unknown that is only
    due to a failing control it needs is left to a later pass; any other unknown of a control with a
    role refuses the plan, as does a planner that refuses: half of a set is worse than none.
    """
    mended = [f for f in findings if f.role and f.status in MENDABLE and not f.waived]
    failing = {f.control for f in mended}
    waiting, blind = _unknowns([f for f in findings if f.role and f.status is Status.UNKNOWN], failing)
    roles = [role for role in order if any(f.role == role for f in mended)]
    refused = [f"{f.control} is unknown: {f.actual}" for f in blind]
    steps = []
    for role in roles:
        wanted = wanted_for(role, judged.facts, judged.profile, judged.stack)
        if wanted.refused:
            refused.append(f"{role}: {wanted.refused}")
        steps.append(Step(role, tuple(f for f in mended if f.role == role), changes(wanted, judged.facts)))
    later = tuple(role for role in order if role not in roles and any(f.role == role for f in waiting))
    if refused:
        return Plan(host, refused=tuple(refused))
    return Plan(host, tuple(steps), later)


def _unknowns(unknowns: Iterable[Finding], failing: Collection[str]) -> tuple[list[Finding], list[Finding]]:
    """Those that wait for a failing control to be mended (through any number of others), and the rest."""
    waiting: list[Finding] = []
    blind = list(unknowns)
    caused = set(failing)
    while moved := [f for f in blind if caused & set(f.needs)]:
        waiting += moved
        blind = [f for f in blind if f not in moved]
        caused |= {f.control for f in moved}
    return waiting, blind
