"""The way back: hosts put back as a snapshot of each has them, looked at again, and their states named."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provision.converge import Outcome, State
from provision.errors import Failure

from .arriving import back_from_reboot, look_at
from .converging import play

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from provision.report.progress import Progress

    from .directory import RunDirectory
    from .fleet import Fleet
    from .host import Traveller


def go_back(
    fleet: Fleet,
    travellers: Sequence[Traveller],
    snapshots: Mapping[str, str],
    directory: RunDirectory,
    progress: Progress,
    *,
    forks: int,
    may_reboot: bool,
) -> None:
    """Put each host back to its snapshot; it then is `reverted`, or `partial` with the reason in its failure.

    A host whose loaded driver is not the one that was put back is rebooted where that is allowed; where it
    is not, its `reboot` says so.
    """
    before = {t.name: t.state for t in travellers}
    for traveller in travellers:
        progress.step(traveller.name, "rollback", f"to {snapshots[traveller.name]}")
        traveller.ended = str(State.PARTIAL)  # until we know better: a Ctrl-C ends this anywhere
    result = play(
        fleet,
        travellers,
        directory.path,
        "snapshot_restore",
        lambda t: {"snapshot_name": snapshots[t.name]},
        forks=forks,
        on_event=progress.on_event,
    )
    for traveller in travellers:
        came = result.hosts[traveller.name]
        traveller.passes.append(came)
        if came.outcome is not Outcome.DONE:
            if came.state is State.UNTOUCHED:
                traveller.ended = before[traveller.name]
            traveller.failure = Failure(f"the way back stopped: {came.message}", host=traveller.name)
        else:
            traveller.ended, traveller.reboot = str(State.REVERTED), ""
    back = [t for t in travellers if t.ended == State.REVERTED]
    look_at(fleet, back)
    for traveller in back:
        why = stale(traveller)
        if why and may_reboot and not traveller.local:
            restart(fleet, traveller, progress)
        elif why:
            traveller.reboot = why


def stale(traveller: Traveller) -> str:
    """Why the host needs a reboot: it still runs the driver of before; empty where it does not."""
    return traveller.look.stale_driver if traveller.look else ""


def restart(fleet: Fleet, traveller: Traveller, progress: Progress) -> None:
    """Reboot a host and look at it again; where it is not back in time, that is its failure."""
    if back_from_reboot(fleet, traveller, progress):
        look_at(fleet, [traveller])
