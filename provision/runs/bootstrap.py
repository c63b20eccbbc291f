"""Bootstrap and apply: look, plan, ask, converge in passes, look, prove. Every host ends in a named state."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol

from provision.errors import Failure
from provision.plan.asked import ALL
from provision.report import documents
from provision.report.model import Run

from .arriving import travellers_of
from .fleet import Fleet
from .order import hold_back, stops
from .passes import Passes
from .planning import plan_all
from .proving import prove

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from provision.plan.asked import Asked
    from provision.report.progress import Progress

    from .directory import RunDirectory
    from .host import Traveller
    from .managed import Managed

COMMAND = "bootstrap"


@dataclass(frozen=True)
class Consent:
    """How the run asks a person. `plans` shows them and says whether to go on; `host_key` None never asks."""

    plans: Callable[[Sequence[Traveller]], bool]
    host_key: Callable[[str], bool] | None = None


class Course(Protocol):
    """What a kind of run adds to the common way, at the two points where hosts are judged."""

    def planned(self, traveller: Traveller) -> None:
        """A host has its plan; a failure that is set now keeps it from being begun."""

    def proven(self, fleet: Fleet, travellers: Sequence[Traveller], progress: Progress) -> None:
        """These hosts went the whole way, well or not."""


class Plain:
    """Adds nothing."""

    def planned(self, traveller: Traveller) -> None: ...

    def proven(self, fleet: Fleet, travellers: Sequence[Traveller], progress: Progress) -> None: ...


class Declined(Failure):
    """The person said no to the plan; nothing was done."""


def bootstrap(
    hosts: Sequence[Managed],
    directory: RunDirectory,
    *,
    consent: Consent,
    progress: Callable[[Mapping[str, tuple[str, ...]]], Progress],
    resume: Callable[[str], str],
    forks: int = 20,
    may_reboot: bool = False,
    canary: bool = False,
    command: str = COMMAND,
    asked: Callable[[str], Asked] = lambda _: ALL,
    course: Course | None = None,
) -> Run:
    """Take hosts from an address to proven GPU servers. What went wrong on a host is in its result.

    `command` is the name that this run goes by; `asked` says for each host which roles may run there.

    `canary`: one host goes the whole way before the others begin. What can cut the line is tried on one
    host first in any case. `resume` gives the command by which a person goes on with a host that is left
    half-way. Raises Declined where the plan was not agreed to, and Usage where nobody was there to ask.
    """
    began, taken = time.monotonic(), datetime.now(UTC)
    travellers = travellers_of((host.name for host in hosts), resume, asked)
    interrupted = False
    with Fleet(hosts, forks) as fleet:
        flow = _Flow(fleet, travellers, directory, forks, may_reboot, course or Plain())
        try:
            flow.plan_all(consent)
            if not consent.plans(list(travellers.values())):
                raise Declined("nothing was done")
            planned = {t.name: (*t.plan.roles, *t.plan.later) for t in travellers.values() if t.plan}
            with progress(planned) as shown:
                interrupted = not flow.run_all(shown, canary=canary)
        except KeyboardInterrupt:
            interrupted = True
        finally:
            flow.save_states()
    run = Run(
        command=command,
        profile=", ".join(sorted({h.profile.name for h in hosts})),
        taken=f"{taken:%Y-%m-%dT%H:%M:%SZ}",
        seconds=time.monotonic() - began,
        hosts=tuple(t.finished() for t in travellers.values()),
        interrupted=interrupted,
        directory=str(directory.path),
    )
    directory.write("report.json", documents.run(run))
    return run


class _Flow:
    """The steps of one run; each keeps what it learned in the travellers and in the run directory."""

    def __init__(
        self,
        fleet: Fleet,
        travellers: Mapping[str, Traveller],
        directory: RunDirectory,
        forks: int,
        may_reboot: bool,
        course: Course,
    ) -> None:
        self._course = course
        self._fleet, self._travellers, self._directory = fleet, travellers, directory
        self._forks = forks
        self._passes = Passes(fleet, travellers, directory, forks=forks, may_reboot=may_reboot)

    def plan_all(self, consent: Consent) -> None:
        """Connect, record, judge and plan every host."""
        plan_all(self._fleet, self._travellers, consent.host_key, to_change=True)
        self._passes.keep_recordings(self._travellers.values(), "before")
        for traveller in self._travellers.values():
            if traveller.look and traveller.failure is None:
                self._course.planned(traveller)
        plans = [t.plan.as_dict() for t in self._travellers.values() if t.plan]
        self._directory.write("plan.json", {"plans": plans})
        self.save_states()

    def run_all(self, progress: Progress, *, canary: bool) -> bool:
        """Converge and prove every host. False where the run was interrupted.

        With `canary` one host goes the whole way, proofs included, before the others begin.
        """
        going = [t for t in self._travellers.values() if t.goes_on]
        if canary and len(going) > 1:
            first, *others = going
            progress.say(f"{first.name} goes first; the other hosts wait for it")
            if not self._passes.converge([first], progress):
                return False
            self._prove([first], progress)
            if stops(first, first=True):
                hold_back(others, first)
        if not self._passes.converge(tuple(self._travellers.values()), progress):
            return False
        self._prove(self._travellers.values(), progress)
        return True

    def _prove(self, travellers: Iterable[Traveller], progress: Progress) -> None:
        """Verify the hosts that came to a good end, those that were verified already left out."""
        here = [t for t in travellers if not t.checks]
        # Until they are proven, whoever kills us leaves them half-way.
        self._passes.save_states(half=[t for t in here if t.passes])
        proven = [t for t in here if t.look and t.failure is None and not t.reboot]
        prove(self._fleet, proven, self._directory.path, progress=progress, forks=self._forks)
        self._course.proven(self._fleet, here, progress)
        for traveller in here:
            if traveller not in proven and not traveller.passes:
                continue
            done = traveller.finished()
            said = done.passes and done.passes[-1].message  # it was shown when the task failed
            progress.end(traveller.name, done.state, "" if said else done.trouble or done.reboot)

    def save_states(self) -> None:
        self._passes.save_states()
