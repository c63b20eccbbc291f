"""Plan: what bootstrap would do, without doing it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from provision.errors import Failure
from provision.plan.changes import changes
from provision.plan.make import make
from provision.plan.model import Plan, Step
from provision.plan.saved import profile_digest
from provision.planners import wanted_for
from provision.profile.tree import role_order

from .arriving import arrive, travellers_of
from .fleet import Fleet
from .preflight import preflight

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from .host import Traveller
    from .managed import Managed

# Roles that change how a host is reached.
CUTTING = frozenset({"ssh_hardening", "firewall", "limits"})
# The role that goes before all others wherever something is changed.
SNAPSHOT = "snapshot"


def plan(
    hosts: Sequence[Managed], *, forks: int = 20, ask: Callable[[str], bool] | None = None
) -> tuple[Traveller, ...]:
    """Each host with its plan, or with the failure that keeps it from having one."""
    travellers = travellers_of(host.name for host in hosts)
    with Fleet(hosts, forks, by_password=True) as fleet:
        plan_all(fleet, travellers, ask)
    return tuple(travellers.values())


def plan_all(
    fleet: Fleet,
    travellers: Mapping[str, Traveller],
    ask: Callable[[str], bool] | None,
    *,
    to_change: bool = False,
) -> None:
    """Connect, record, judge and plan every host. `to_change` as in arrive()."""
    arrive(fleet, travellers, ask, to_change=to_change)
    for traveller in travellers.values():
        if traveller.look and traveller.failure is None:
            traveller.failure = preflight(traveller.name, traveller.look)
        if traveller.look and traveller.failure is None:
            make_plan(traveller)


def make_plan(traveller: Traveller) -> None:
    """Plan a host from its last look; a refused plan is its failure."""
    assert traveller.look is not None
    seen, asked = traveller.look, traveller.asked
    order = [role for role in role_order() if role != SNAPSHOT]
    always = asked.always(order, traveller.ran)
    traveller.plan = make(traveller.name, seen.judged, seen.findings, asked.order(order), always)
    if asked.snapshot and traveller.plan.steps and SNAPSHOT not in (*traveller.plan.roles, *traveller.ran):
        traveller.plan = _with_way_back(traveller, traveller.plan)
    if traveller.local and (cutting := CUTTING.intersection(traveller.plan.roles)):
        why = (
            f"{', '.join(sorted(cutting))} can cut the way into a host, and on the machine that this runs on "
            "nobody outside would prove that it still leads in: run it from another machine"
        )
        traveller.plan = Plan(traveller.name, refused=(why,))
    if traveller.plan.refused:
        traveller.failure = Failure("; ".join(traveller.plan.refused), host=traveller.name)
    elif why := _not_as_saved(traveller):
        traveller.failure = Failure(
            why, host=traveller.name, do="nothing of it was begun; `plan --out` saves the plan as it is now"
        )


def _with_way_back(traveller: Traveller, plan: Plan) -> Plan:
    """The plan with the snapshot that comes before any change, where one is to be taken."""
    assert traveller.look is not None
    judged = traveller.look.judged
    wanted = wanted_for(SNAPSHOT, judged.facts, judged.profile, judged.stack)
    if wanted.refused:
        return Plan(plan.host, refused=(f"{SNAPSHOT}: {wanted.refused}",))
    if not wanted.steps:
        return plan
    return replace(plan, steps=(Step(SNAPSHOT, (), changes(wanted, judged.facts)), *plan.steps))


def _not_as_saved(traveller: Traveller) -> str:
    """Why this plan must not run where a saved one was agreed to; empty where it may."""
    saved, plan = traveller.asked.saved, traveller.plan
    assert plan is not None
    assert traveller.look is not None
    if saved is None:
        return ""
    if traveller.passes:
        more = saved.beyond(plan)
        return (
            f"the next pass would run {', '.join(more)}, which the saved plan does not have" if more else ""
        )
    if saved.profile != profile_digest(traveller.look.judged.profile.variables):
        return f"the profile is another one than when the plan was saved ({saved.made})"
    moved = saved.moved(plan, begun=traveller.asked.begun)
    return f"the host is not as it was when the plan was saved ({saved.made}): {moved}" if moved else ""
