"""Getting to the hosts of a run and looking at them; what goes wrong stays with its host."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .host import Traveller
from .look import Look, look

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from .fleet import Fleet


def travellers_of(names: Iterable[str], resume: Callable[[str], str] = lambda _: "") -> dict[str, Traveller]:
    """A traveller for each host. `resume` gives the command that goes on from where a host is left."""
    return {name: Traveller(name, resume(name)) for name in names}


def arrive(
    fleet: Fleet, travellers: Mapping[str, Traveller], ask: Callable[[str], bool] | None = None
) -> None:
    """Connect to every host, record and judge it. `ask` answers for host keys that are not known."""
    for name, failure in fleet.open(ask).items():
        travellers[name].failure = failure
    look_at(fleet, [t for t in travellers.values() if t.failure is None])


def look_at(fleet: Fleet, travellers: Iterable[Traveller]) -> None:
    """Record and judge hosts side by side; each keeps its newest look, or why there is none."""
    going = {t.name: t for t in travellers}
    for name, seen in fleet.each(look, going).items():
        if isinstance(seen, Look):
            going[name].look, going[name].reached = seen, True
        else:
            going[name].failure = seen
