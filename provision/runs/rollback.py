"""Rollback by hand: what going back changes is shown, agreed to, done, and looked at."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from provision.converge import State
from provision.errors import Failure
from provision.facts.known import Unknown
from provision.plan import back
from provision.report import documents
from provision.report.model import HostRun, Judgement, Run

from .arriving import arrive, travellers_of
from .fleet import Fleet
from .going_back import go_back
from .passes import Passes
from .preflight import preflight
from .reading import read

if TYPE_CHECKING:
    from collections.abc import Callable

    from provision.facts import Facts
    from provision.plan.model import Change
    from provision.report.progress import Progress

    from .directory import RunDirectory
    from .fleet import Line
    from .host import Traveller
    from .managed import Managed

COMMAND = "rollback"


@dataclass(frozen=True)
class WayBack:
    """What is put to the person: to which snapshot, what changes, and what stays as it has become since."""

    host: str
    snapshot: str
    taken: str
    changes: tuple[Change, ...]
    others: tuple[str, ...]


def rollback(
    host: Managed,
    snapshot: str | None,
    directory: RunDirectory,
    *,
    agreed: Callable[[WayBack], bool],
    progress: Callable[[], Progress],
    ask: Callable[[str], bool] | None,
    may_reboot: bool,
) -> Run:
    """Put a host back to a snapshot, the newest where none is named.

    Raises Failure where it cannot be begun, or was not agreed to.
    """
    began, taken = time.monotonic(), datetime.now(UTC)
    travellers = travellers_of([host.name])
    [traveller] = travellers.values()
    with Fleet([host], 1, by_password=True) as fleet:
        arrive(fleet, travellers, ask, alone=True)
        traveller.failure = traveller.failure or (
            preflight(traveller.name, traveller.look) if traveller.look else None
        )
        if traveller.failure:
            raise traveller.failure
        assert traveller.look is not None
        way = _way(fleet.lines[host.name], traveller.look.judged.facts, snapshot)
        if not agreed(way):
            raise Failure("nothing was done", host=host.name)
        passes = Passes(fleet, travellers, directory, forks=1, may_reboot=may_reboot)
        passes.keep_recordings([traveller], "before")
        directory.write("plan.json", {"snapshot": way.snapshot, "changes": [c.what for c in way.changes]})
        passes.save_states(half=[traveller])
        try:
            with progress() as shown:
                to = {host.name: way.snapshot}
                go_back(fleet, [traveller], to, directory, shown, forks=1, may_reboot=may_reboot)
        finally:
            passes.save_states()
        passes.keep_recordings([traveller], "after")
    run = Run(
        command=COMMAND,
        profile=host.profile.name,
        taken=f"{taken:%Y-%m-%dT%H:%M:%SZ}",
        seconds=time.monotonic() - began,
        hosts=(_finished(traveller),),
        directory=str(directory.path),
    )
    directory.write("report.json", documents.run(run))
    return run


def _way(line: Line, facts: Facts, name: str | None) -> WayBack:
    there = facts.snapshots
    if isinstance(there, Unknown):
        raise Failure(f"its snapshots are not known: {there.reason}", host=line.name)
    if not there:
        raise Failure("there is no snapshot on this host", host=line.name, do="bootstrap takes the first one")
    names = [each.name for each in there]
    if name is not None and name not in names:
        raise Failure(f"there is no snapshot {name}", host=line.name, do=f"there are {', '.join(names)}")
    found, brought = read(line, [name or names[-1]])
    [kept] = found.values()
    changes, others = back.changes(kept, facts, brought), back.others(kept, facts, brought)
    return WayBack(line.name, kept.name, kept.taken, changes, others)


def _finished(traveller: Traveller) -> HostRun:
    """What was asked for is the old state: `done` once the host has it, whatever controls say of that."""
    done = traveller.ended == State.REVERTED and traveller.failure is None and not traveller.reboot
    return HostRun(
        host=traveller.name,
        state=str(State.DONE) if done else str(State.PARTIAL) if traveller.reboot else traveller.state,
        planned=tuple(role for each in traveller.passes for role in each.roles),
        passes=tuple(traveller.passes),
        judgement=Judgement(traveller.name),
        trouble=traveller.failure.reason if traveller.failure else None,
        resume="" if done else f"gpu-provision rollback {traveller.name}",
        reboot=traveller.reboot,
    )
