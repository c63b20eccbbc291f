"""Which hosts go first: what could cut the line is tried on one host before the others."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from provision.converge.result import Outcome, State
from provision.errors import Failure

from .planning import CUTTING, SNAPSHOT

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .host import Traveller


@dataclass(frozen=True)
class Wave:
    """Hosts that one converge takes side by side. `first`: the others wait for what comes of it."""

    hosts: tuple[Traveller, ...]
    first: bool = False


class Order:
    """The waves of a run.

    Of several hosts in whose plans a role can cut the line, one goes first, with these roles alone: it
    costs seconds, and a whole fleet does not wait for one host's packages. The others follow, no more at a
    time than `forks`, so that some are still untouched when one of them reverts.
    """

    def __init__(self, forks: int) -> None:
        self._forks = forks
        self._tried: set[str] = set()

    def waves(self, going: Sequence[Traveller]) -> list[Wave]:
        """The waves of the next pass over these hosts; a first wave is one host, and the only one."""
        cutting = {t.name: CUTTING.intersection(_roles(t)) - self._tried for t in going}
        touched = [t for t in going if cutting[t.name]]
        if len(touched) > 1:
            first = max(touched, key=lambda t: len(cutting[t.name]))
            assert first.plan is not None
            steps = tuple(step for step in first.plan.steps if step.role in {SNAPSHOT, *cutting[first.name]})
            first.plan = replace(first.plan, steps=steps)
            return [Wave((first,), first=True)]
        if not any(CUTTING.intersection(_roles(t)) for t in going):
            return [Wave(tuple(going))]
        return [Wave(tuple(going[n : n + self._forks])) for n in range(0, len(going), self._forks)]

    def passed(self, wave: Wave) -> None:
        """What went well on a host of this run need not be tried on one before the others again."""
        for traveller in wave.hosts:
            self._tried |= CUTTING.intersection(traveller.passes[-1].roles_done)


def stops(traveller: Traveller, *, first: bool) -> bool:
    """Whether no further host may begin after this one.

    One that went first has to come to a good end; of the others one that reverted, or whose line was lost.
    """
    if first:
        failed = any(check.failed for check in traveller.checks)
        return traveller.failure is not None or bool(traveller.reboot) or failed
    last = traveller.passes[-1] if traveller.passes else None
    return last is not None and (last.state is State.REVERTED or last.outcome is Outcome.UNREACHABLE)


def hold_back(waiting: Iterable[Traveller], after: Traveller) -> None:
    """These hosts are not begun; each says why."""
    for traveller in waiting:
        traveller.failure = Failure(
            f"not begun: {after.name} went before it and {_end(after)}",
            host=traveller.name,
            do=f"find out why on {after.name}; then `--resume` goes on with the hosts that are not done",
        )


def _end(after: Traveller) -> str:
    if any(check.failed for check in after.checks):
        return "does not do what it is meant to (its checks say what)"
    return "waits for a reboot" if after.reboot else f"was left {after.state}"


def _roles(traveller: Traveller) -> tuple[str, ...]:
    return traveller.plan.roles if traveller.plan else ()
