"""Verify as a step of a run: each host's behaviour proven over the session that is open."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provision.verify.result import Check, Started
from provision.verify.run import verify
from provision.verify.subject import Subject

from . import peers

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from provision.report.progress import Progress

    from .fleet import Fleet, Line
    from .host import Traveller


def prove(
    fleet: Fleet,
    travellers: Sequence[Traveller],
    run_dir: Path,
    *,
    progress: Progress,
    forks: int,
    disruptive: bool = False,
) -> None:
    """Run the suite against these hosts and keep each host's checks with it."""
    if not travellers:
        return

    def tell(event: Started | Check) -> None:
        if isinstance(event, Started):
            progress.step(event.host, "verify", event.title)

    subjects = [_subject(fleet.lines[t.name], t) for t in travellers]
    only = frozenset(role for t in travellers for role in t.asked.only)
    result = verify(subjects, run_dir, disruptive=disruptive, on_event=tell, forks=forks, only=only)
    for traveller in travellers:
        traveller.checks = result.checks[traveller.name]
    if not only or "nccl" in only:
        together = peers.try_all(fleet, travellers)
        for traveller in travellers:
            if traveller.name in together:
                traveller.checks += (together[traveller.name],)


def _subject(line: Line, traveller: Traveller) -> Subject:
    assert traveller.look is not None
    managed = line.managed
    return Subject(
        target=line.target,
        profile=managed.profile,
        stack=traveller.look.judged.stack,
        recording=traveller.look.recording,
        control_path=line.control_path,
        sudo_password=managed.secrets.sudo,
        login_password=line.login_password,
    )
