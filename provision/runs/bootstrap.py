"""Bootstrap: look, plan, ask, converge in passes, look again, verify. Every host ends in a named state."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from provision.converge import Outcome
from provision.converge.reboot import reboot
from provision.errors import Failure, Unreached
from provision.report import documents
from provision.report.model import Run

from .arriving import look_at, travellers_of
from .converging import run_pass
from .directory import RunDirectory, file_name
from .fleet import Fleet
from .planning import make_plan, plan_all
from .proving import prove

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from provision.report.progress import Progress

    from .host import Traveller
    from .managed import Managed

# Each pass ends the ignorance of one layer (driver, then what only a driver can tell); more are a circle.
MOST_PASSES = 4
COMMAND = "bootstrap"


@dataclass(frozen=True)
class Consent:
    """How the run asks a person. `plans` shows them and says whether to go on; `host_key` None never asks."""

    plans: Callable[[Sequence[Traveller]], bool]
    host_key: Callable[[str], bool] | None = None


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
) -> Run:
    """Take hosts from an address to proven GPU servers. What went wrong on a host is in its result.

    `resume` gives the command by which a person goes on with a host that is left half-way.
    Raises Declined where the plan was not agreed to, and Usage where nobody was there to ask.
    """
    began, taken = time.monotonic(), datetime.now(UTC)
    travellers = travellers_of((host.name for host in hosts), resume)
    interrupted = False
    with Fleet(hosts, forks) as fleet:
        flow = _Flow(fleet, travellers, directory, forks, may_reboot)
        try:
            flow.plan_all(consent)
            if not consent.plans(list(travellers.values())):
                raise Declined("nothing was done")
            planned = {t.name: (*t.plan.roles, *t.plan.later) for t in travellers.values() if t.plan}
            with progress(planned) as shown:
                interrupted = not flow.converge_all(shown)
                if not interrupted:
                    flow.prove_all(shown)
        except KeyboardInterrupt:
            interrupted = True
        finally:
            flow.save_states()
    run = Run(
        command=COMMAND,
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
    ) -> None:
        self._fleet, self._travellers, self._directory = fleet, travellers, directory
        self._forks, self._may_reboot = forks, may_reboot

    def plan_all(self, consent: Consent) -> None:
        """Connect, record, judge and plan every host."""
        plan_all(self._fleet, self._travellers, consent.host_key, to_change=True)
        self._keep_recordings(self._travellers.values(), "before")
        plans = [t.plan.as_dict() for t in self._travellers.values() if t.plan]
        self._directory.write("plan.json", {"plans": plans})
        self.save_states()

    def converge_all(self, progress: Progress) -> bool:
        """Passes until no host has anything left to run. False where the run was interrupted."""
        for number in range(1, MOST_PASSES + 1):
            going = [t for t in self._travellers.values() if t.goes_on]
            if not going:
                return True
            for traveller in going:
                traveller.planned += traveller.plan.roles if traveller.plan else ()
            result = run_pass(
                self._fleet, going, self._directory.path, forks=self._forks, on_event=progress.on_event
            )
            for traveller in going:
                traveller.passes.append(result.hosts[traveller.name])
            self.save_states()
            if result.interrupted:
                for traveller in going:
                    traveller.look = None  # what was seen before may not hold any more
                return False
            self._after_pass(going, number, progress)
        for traveller in self._travellers.values():
            if traveller.goes_on:
                traveller.failure = Failure(
                    f"still not as planned after {MOST_PASSES} passes", host=traveller.name
                )
        return True

    def _after_pass(self, going: Sequence[Traveller], number: int, progress: Progress) -> None:
        self._look_at(going, f"after-{number}", progress)
        for traveller in going:
            result = traveller.passes[-1]
            if result.outcome is not Outcome.DONE:
                where = f"{result.role}: {result.task}: " if result.role else ""
                kind = Unreached if result.outcome is Outcome.UNREACHABLE else Failure
                traveller.failure = kind(f"{where}{result.message}", host=traveller.name)
                continue
            if traveller.failure is None:
                self._judge_result(traveller, progress)

    def _judge_result(self, traveller: Traveller, progress: Progress) -> None:
        """What the pass left: done, a next pass, a reboot, or a role that did not do its work."""
        if (waits := traveller.waits_for_reboot()) and self._may_reboot and not traveller.local:
            self._reboot(traveller, progress)
            if traveller.failure:
                return
            waits = ""
        if waits:
            traveller.reboot = waits
        elif left := traveller.left_failing():
            traveller.failure = Failure(
                f"the roles ran and left this failing: {'; '.join(left)}", host=traveller.name
            )
        else:
            make_plan(traveller)

    def _reboot(self, traveller: Traveller, progress: Progress) -> None:
        line = self._fleet.lines[traveller.name]
        progress.step(traveller.name, "reboot", "waiting for another boot to answer")
        try:
            reboot(line.target, sudo_password=line.managed.secrets.sudo)
            line.again()
        except Failure as e:
            traveller.failure = e
            return
        self._look_at([traveller], "after-reboot", progress)

    def _look_at(self, travellers: Sequence[Traveller], when: str, progress: Progress) -> None:
        for traveller in travellers:
            progress.step(traveller.name, "recording")
        look_at(self._fleet, travellers)
        self._keep_recordings(travellers, when)

    def _keep_recordings(self, travellers: Iterable[Traveller], when: str) -> None:
        for t in travellers:
            if t.look:
                self._directory.write(
                    f"recordings/{file_name(t.name)}.{when}.json", t.look.recording.as_dict()
                )

    def prove_all(self, progress: Progress) -> None:
        """Verify the hosts that came to a good end."""
        proven = [t for t in self._travellers.values() if t.look and t.failure is None and not t.reboot]
        prove(self._fleet, proven, self._directory.path, progress=progress, forks=self._forks)
        tried = {t.name for t in proven} | {t.name for t in self._travellers.values() if t.passes}
        for traveller in self._travellers.values():
            done = traveller.finished()
            if traveller.name in tried:
                said = done.passes and done.passes[-1].message  # it was shown when the task failed
                progress.end(traveller.name, done.state, "" if said else done.trouble or done.reboot)

    def save_states(self) -> None:
        self._directory.write_states({t.name: t.state for t in self._travellers.values()})
