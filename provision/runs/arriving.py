"""Getting to the hosts of a run and looking at them; what goes wrong stays with its host."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from provision.converge.reboot import reboot
from provision.errors import Failure
from provision.plan.asked import ALL

from .host import Traveller
from .look import Look, look

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from provision.plan.asked import Asked
    from provision.report.progress import Progress

    from .fleet import Fleet, Line


def travellers_of(
    names: Iterable[str],
    resume: Callable[[str], str] = lambda _: "",
    asked: Callable[[str], Asked] = lambda _: ALL,
) -> dict[str, Traveller]:
    """A traveller for each host. `resume` gives the command that goes on from where a host is left."""
    return {name: Traveller(name, resume(name), asked(name)) for name in names}


def arrive(
    fleet: Fleet,
    travellers: Mapping[str, Traveller],
    ask: Callable[[str], bool] | None = None,
    *,
    to_change: bool = False,
    alone: bool = False,
) -> None:
    """Connect to every host, record and judge it. `ask` answers for host keys that are not known.

    `to_change`: a host that no key gets into is given ours, where the user gave its password. `alone`, which
    that includes: other runs are kept from each host until the fleet is left, and one that another run works
    on is a failure.
    """
    for name, traveller in travellers.items():
        traveller.local = fleet.lines[name].managed.target.local
    failed = dict(fleet.open(ask))
    if to_change:
        with_password = [name for name in failed if fleet.lines[name].managed.secrets.login is not None]
        for name, failure in fleet.each(_greet, with_password).items():
            if failure is None:
                del failed[name]
            else:
                failed[name] = failure
    if to_change or alone:
        there = [name for name in travellers if name not in failed]
        for name, failure in fleet.each(lambda line: line.take_turn(), there).items():
            if failure is not None:
                travellers[name].reached = True
                failed[name] = failure
    for name, failure in failed.items():
        travellers[name].failure = failure
    look_at(fleet, [t for t in travellers.values() if t.failure is None])


def _greet(line: Line) -> None:
    """Leave our key there by password, and go on by the key."""
    from provision.access.first_contact import first_contact
    from provision.access.own_key import own_key

    target, password = line.target, line.managed.secrets.login
    assert password is not None
    line.accept(replace(line.managed, target=first_contact(target, password, own_key(target))))
    line.session.open()


def look_at(fleet: Fleet, travellers: Iterable[Traveller]) -> None:
    """Record and judge hosts side by side; each keeps its newest look, or why there is none."""
    going = {t.name: t for t in travellers}
    for name, seen in fleet.each(look, going).items():
        if isinstance(seen, Look):
            going[name].look, going[name].reached = seen, True
        else:
            going[name].failure = seen


def back_from_reboot(fleet: Fleet, traveller: Traveller, progress: Progress) -> bool:
    """Reboot a host and log in again; False, with its failure, where it is not back in time."""
    line = fleet.lines[traveller.name]
    progress.step(traveller.name, "reboot", "waiting for another boot to answer")
    try:
        reboot(line.target, sudo_password=line.managed.secrets.sudo)
        line.again()
    except Failure as e:
        traveller.failure = e
        return False
    return True
