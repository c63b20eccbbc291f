"""A look at a host: its recording, and what the profile and the catalog make of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING

from provision import controls
from provision.catalog import catalog
from provision.catalog.host import stack_for
from provision.controls.alike import traits
from provision.controls.model import Finding, Judged, Status
from provision.facts import Facts
from provision.facts.smi_trouble import SmiTrouble
from provision.recording.program import program
from provision.recording.remote import record
from provision.report.model import Judgement

from .rights import unseen

if TYPE_CHECKING:
    from provision.profile.model import Profile
    from provision.recording.model import Recording

    from .fleet import Line

LOADED = "driver.loaded-matches-installed"


@dataclass(frozen=True)
class Look:
    """One host at one time. Everything in it follows from the recording, the profile and the date."""

    recording: Recording
    judged: Judged
    findings: tuple[Finding, ...]

    @property
    def stale_driver(self) -> str:
        """Words for a loaded driver that is not the installed one; empty where it is, or is not known.

        The driver's own complaint counts in a container, too, where the kernel is another machine's.
        """
        for finding in self.findings:
            if finding.control == LOADED and finding.status is Status.FAIL:
                return f"{finding.title}: {finding.actual}"
        if self.judged.facts.smi_trouble is SmiTrouble.VERSION_MISMATCH:
            return "the driver that is loaded is of another release than the one that is installed"
        return ""

    @property
    def judgement(self) -> Judgement:
        return Judgement(
            self.recording.host,
            self.findings,
            self.judged.stack,
            without_root=unseen(self.judged.facts),
            traits=traits(self.judged.facts),
        )


def prepare() -> None:
    """Load the collector, the controls and the catalog, so that the first look does not wait for them."""
    program()
    controls.all_controls()
    catalog()


def look(line: Line, today: date | None = None) -> Look:
    """Record and judge a host over its open session. Raises Unreached where it gives no whole answer."""
    recording = record(line.session, target=line.managed.target)
    return judge(recording, line.managed.profile, today)


def judge(recording: Recording, profile: Profile, today: date | None = None) -> Look:
    """Judge a recording, taken now or years ago; `today` is the day the catalog's dates are held against."""
    facts = Facts(recording)
    stack = stack_for(facts, profile, today or date.today())
    judged = Judged(facts, profile, stack)
    return Look(recording, judged, controls.judge(facts, profile, stack))
