"""Snapshots of hosts: taken, listed, compared and taken away."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provision.converge import Outcome
from provision.errors import Failure
from provision.facts.known import Unknown

from .arriving import arrive, travellers_of
from .converging import play
from .fleet import Fleet
from .preflight import preflight
from .reading import read

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from provision.facts.snapshots import Kept, Snapshot
    from provision.report.progress import Progress

    from .directory import RunDirectory
    from .host import Traveller
    from .managed import Managed


def take(
    hosts: Sequence[Managed],
    directory: RunDirectory,
    *,
    why: str,
    progress: Progress,
    forks: int,
    ask: Callable[[str], bool] | None,
) -> tuple[Traveller, ...]:
    """Take a snapshot of each host, named after the run; what went wrong is that host's failure."""

    def variables(traveller: Traveller) -> Mapping[str, object]:
        return {"snapshot_name": directory.path.name, "snapshot_why": why}

    return _play(hosts, directory, "snapshot", variables, progress=progress, forks=forks, ask=ask)


def prune(
    host: Managed,
    names: Sequence[str],
    directory: RunDirectory,
    *,
    progress: Progress,
    ask: Callable[[str], bool] | None,
) -> Traveller:
    """Take snapshots of these names away."""
    [traveller] = _play(
        [host],
        directory,
        "snapshot_prune",
        lambda _: {"snapshot_absent": list(names)},
        progress=progress,
        forks=1,
        ask=ask,
    )
    return traveller


def _play(
    hosts: Sequence[Managed],
    directory: RunDirectory,
    playbook: str,
    variables: Callable[[Traveller], Mapping[str, object]],
    *,
    progress: Progress,
    forks: int,
    ask: Callable[[str], bool] | None,
) -> tuple[Traveller, ...]:
    travellers = travellers_of(host.name for host in hosts)
    with Fleet(hosts, forks, by_password=True) as fleet:
        arrive(fleet, travellers, ask, alone=True)
        for traveller in travellers.values():
            if traveller.look and traveller.failure is None:
                traveller.failure = preflight(traveller.name, traveller.look)
        going = [t for t in travellers.values() if t.failure is None]
        if going:
            result = play(
                fleet, going, directory.path, playbook, variables, forks=forks, on_event=progress.on_event
            )
            for traveller in going:
                came = result.hosts[traveller.name]
                traveller.passes.append(came)
                if came.outcome is not Outcome.DONE:
                    traveller.failure = Failure(came.message, host=traveller.name)
    directory.write_states({t.name: t.state for t in travellers.values()})
    return tuple(travellers.values())


def listed(host: Managed, *, ask: Callable[[str], bool] | None) -> tuple[Snapshot, ...]:
    """The snapshots of a host, oldest first. Raises Failure where they cannot be seen."""
    [traveller] = travellers_of([host.name]).values()
    with Fleet([host], 1, by_password=True) as fleet:
        arrive(fleet, {host.name: traveller}, ask)
    if traveller.failure:
        raise traveller.failure
    assert traveller.look is not None
    found = traveller.look.judged.facts.snapshots
    if isinstance(found, Unknown):
        raise Failure(f"its snapshots are not known: {found.reason}", host=host.name)
    return found


def shown(host: Managed, names: Sequence[str], *, ask: Callable[[str], bool] | None) -> dict[str, Kept]:
    """What snapshots of these names keep. Raises Failure where one is not there."""
    with Fleet([host], 1, by_password=True) as fleet:
        failed = fleet.open(ask)
        if host.name in failed:
            raise failed[host.name]
        return read(fleet.lines[host.name], names)[0]
