"""Converging in passes: roles run, the host is looked at again, and what is left is planned anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provision.converge import Outcome
from provision.converge.result import State
from provision.errors import Failure, Unreached

from .arriving import back_from_reboot, look_at
from .converging import run_pass
from .directory import file_name
from .order import Order, hold_back, stops
from .planning import make_plan

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from provision.report.progress import Progress

    from .directory import RunDirectory
    from .fleet import Fleet
    from .host import Traveller
    from .order import Wave

# Each pass ends the ignorance of one layer (driver, then what only a driver can tell); more are a circle.
# The host that goes first has one pass more.
MOST_PASSES = 4


class Passes:
    """The passes of one run; each keeps what it learned in the travellers and in the run directory."""

    def __init__(
        self,
        fleet: Fleet,
        travellers: Mapping[str, Traveller],
        directory: RunDirectory,
        *,
        forks: int,
        may_reboot: bool,
    ) -> None:
        self._fleet, self._travellers, self._directory = fleet, travellers, directory
        self._forks, self._may_reboot = forks, may_reboot
        self._order = Order(forks)

    def converge(self, travellers: Sequence[Traveller], progress: Progress) -> bool:
        """Passes until none of these hosts has anything left to run. False where the run was interrupted."""
        rounds = extra = 0
        while going := [t for t in travellers if t.goes_on]:
            waves = self._order.waves(going)
            extra += waves[0].first
            if rounds == MOST_PASSES + extra:
                for traveller in going:
                    says = f"still not as planned after {MOST_PASSES} passes"
                    traveller.failure = Failure(says, host=traveller.name)
                return True
            rounds += 1
            for wave in waves:
                if any(t.failure for t in wave.hosts):
                    break  # held back
                if not self._run(wave, rounds, progress):
                    return False
                self._order.passed(wave)
                if stopper := next((t for t in wave.hosts if stops(t, first=wave.first)), None):
                    hold_back((t for t in travellers if t.goes_on and t not in wave.hosts), stopper)
        return True

    def _run(self, wave: Wave, number: int, progress: Progress) -> bool:
        """One converge of these hosts and a look at what it left. False where it was interrupted."""
        if wave.first:
            [first] = wave.hosts
            roles = ", ".join(first.plan.roles) if first.plan else ""
            progress.say(f"{first.name} goes first with {roles}; the other hosts wait for it")
        for traveller in wave.hosts:
            traveller.planned += traveller.plan.roles if traveller.plan else ()
        # Whoever ends us now, without a word, leaves them in the middle of it.
        self.save_states(half=wave.hosts)
        result = run_pass(
            self._fleet, wave.hosts, self._directory.path, forks=self._forks, on_event=progress.on_event
        )
        for traveller in wave.hosts:
            traveller.passes.append(result.hosts[traveller.name])
        self.save_states()
        if result.interrupted:
            for traveller in wave.hosts:
                traveller.look = None  # what was seen before may not hold any more
            return False
        self._after(wave.hosts, number, progress)
        return True

    def _after(self, hosts: Sequence[Traveller], number: int, progress: Progress) -> None:
        self._look_at(hosts, f"after-{number}", progress)
        for traveller in hosts:
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
        if back_from_reboot(self._fleet, traveller, progress):
            self._look_at([traveller], "after-reboot", progress)

    def _look_at(self, travellers: Sequence[Traveller], when: str, progress: Progress) -> None:
        for traveller in travellers:
            progress.step(traveller.name, "recording")
        look_at(self._fleet, travellers)
        self.keep_recordings(travellers, when)

    def keep_recordings(self, travellers: Iterable[Traveller], when: str) -> None:
        """Each host's last recording, in the run directory under the name of the moment."""
        for t in travellers:
            if t.look:
                self._directory.write(
                    f"recordings/{file_name(t.name)}.{when}.json", t.look.recording.as_dict()
                )

    def save_states(self, half: Iterable[Traveller] = ()) -> None:
        """Each host's state, in the run directory; those of `half` are being changed now."""
        states = {t.name: t.state for t in self._travellers.values()}
        self._directory.write_states({**states, **{t.name: str(State.PARTIAL) for t in half}})
