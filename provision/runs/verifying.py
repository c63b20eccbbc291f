"""Verify by itself: a look for what the host is meant to show, then the suite."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provision.errors import Failure

from .arriving import arrive, travellers_of
from .fleet import Fleet
from .proving import prove

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from provision.report.progress import Progress

    from .directory import RunDirectory
    from .host import Traveller
    from .managed import Managed


def verify(
    hosts: Sequence[Managed],
    directory: RunDirectory,
    *,
    progress: Progress,
    forks: int = 20,
    disruptive: bool = False,
    ask: Callable[[str], bool] | None = None,
) -> tuple[Traveller, ...]:
    """Each host with its checks, or with the failure that kept it from being tried."""
    travellers = travellers_of(host.name for host in hosts)
    with Fleet(hosts, forks, by_password=True) as fleet:
        # Nobody may work on a host that is about to be restarted.
        arrive(fleet, travellers, ask, alone=disruptive)
        for traveller in travellers.values():
            if disruptive and traveller.local and traveller.failure is None:
                traveller.failure = Failure(
                    "the machine that this runs on does not restart itself",
                    host=traveller.name,
                    do="leave --disruptive out, or run it from another machine",
                )
        ready = [t for t in travellers.values() if t.look and t.failure is None]
        prove(fleet, ready, directory.path, progress=progress, forks=forks, disruptive=disruptive)
    return tuple(travellers.values())
