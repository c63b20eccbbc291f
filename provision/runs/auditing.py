"""Audit: every host recorded and judged side by side; nothing on a host is changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provision.report.model import Judgement

from .arriving import arrive, travellers_of
from .fleet import Fleet

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .host import Traveller
    from .managed import Managed


def audit(
    hosts: Sequence[Managed], *, forks: int = 20, ask: Callable[[str], bool] | None = None
) -> tuple[Judgement, ...]:
    """One judgement a host, in the order given; a host that could not be reached says why."""
    travellers = travellers_of(host.name for host in hosts)
    with Fleet(hosts, forks) as fleet:
        arrive(fleet, travellers, ask)
    return tuple(_judgement(traveller) for traveller in travellers.values())


def _judgement(traveller: Traveller) -> Judgement:
    if traveller.look is not None:
        return traveller.look.judgement
    assert traveller.failure is not None
    failure = traveller.failure
    return Judgement(traveller.name, unreached=failure.reason, unreached_code=failure.exit_code)
