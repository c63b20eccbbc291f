"""Upgrade: refuse what cannot work, keep the way back, move the set, prove it, or go back by itself."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from provision.converge import Outcome, State
from provision.errors import Failure
from provision.plan import upgrade as rules

from .directory import RunDirectory
from .going_back import go_back, restart, stale

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from provision.report.progress import Progress

    from .fleet import Fleet
    from .host import Traveller
    from .managed import Managed

COMMAND = "upgrade"
FILE = "upgrade.json"


class Upgrade:
    """What an upgrade adds to the way of a bootstrap (runs.bootstrap.Course).

    `snapshots` are the names by host, empty for a run without; `before` holds the controls that passed
    before the first run of this upgrade.
    """

    def __init__(
        self,
        directory: RunDirectory,
        snapshots: Mapping[str, str],
        before: Mapping[str, Sequence[str]],
        *,
        go_back_on_failure: bool,
        may_reboot: bool,
        forks: int,
    ) -> None:
        self._directory, self._snapshots = directory, snapshots
        self._before = {host: frozenset(controls) for host, controls in before.items()}
        self._begun = frozenset(before)
        self._goes_back, self._may_reboot, self._forks = go_back_on_failure, may_reboot, forks

    def planned(self, traveller: Traveller) -> None:
        """Refuse, or remember what this host is to be held against."""
        assert traveller.look is not None
        look, begun = traveller.look, traveller.name in self._begun
        why = rules.refusals(
            look.judged, look.findings, begun=begun, snapshot=traveller.name in self._snapshots
        )
        if why and traveller.plan and not traveller.plan.empty:
            traveller.failure = Failure(
                f"not upgraded, nothing was touched: {'; '.join(why)}", host=traveller.name
            )
        self._before.setdefault(traveller.name, rules.passing(look.findings))
        self._directory.write(
            FILE,
            {
                "snapshots": dict(self._snapshots),
                "before": {host: sorted(controls) for host, controls in self._before.items()},
            },
        )

    def proven(self, fleet: Fleet, travellers: Sequence[Traveller], progress: Progress) -> None:
        """Judge the hosts that were moved; those that lost something are put back."""
        for traveller in filter(self._moved_before, travellers):
            self._restarted(fleet, traveller, progress)
        why = {t.name: said for t in travellers if (said := self._lost(t))}
        failed = [t for t in travellers if t.name in why]
        back = [t for t in failed if self._goes_back and t.name in self._snapshots]
        for traveller in failed:
            if traveller not in back:
                traveller.failure = Failure(
                    why[traveller.name], host=traveller.name, do=self._by_hand(traveller)
                )
        if not back:
            return
        progress.say(f"going back: {', '.join(t.name for t in back)}")
        went = {t.name: self._snapshots[t.name] for t in back}
        go_back(fleet, back, went, self._directory, progress, forks=self._forks, may_reboot=self._may_reboot)
        for traveller in back:
            said = why[traveller.name]
            if traveller.ended == State.REVERTED and traveller.failure is None:
                said += f"; the host was put back to {went[traveller.name]}"
                findings = traveller.look.findings if traveller.look else ()
                still = rules.lost(self._before[traveller.name], findings) if not traveller.reboot else ()
                said += f", where this does not hold either: {'; '.join(still)}" if still else ""
            elif traveller.failure:
                said += f"; {traveller.failure.says}"
            traveller.failure = Failure(said, host=traveller.name)

    def _moved_before(self, traveller: Traveller) -> bool:
        """Whether an earlier run moved the whole set, and left the judging to after a reboot."""
        moved = not traveller.passes and bool(traveller.plan and traveller.plan.empty)
        return traveller.name in self._begun and moved and traveller.failure is None

    def _restarted(self, fleet: Fleet, traveller: Traveller, progress: Progress) -> None:
        why = stale(traveller)
        if why and self._may_reboot and not traveller.local:
            restart(fleet, traveller, progress)
        elif why:
            traveller.reboot, traveller.ended = why, str(State.PARTIAL)

    def _lost(self, traveller: Traveller) -> str:
        """Why what was done on this host does not stand; empty where it does, or where it was not touched."""
        last = traveller.passes[-1] if traveller.passes else None
        if traveller.ended or traveller.reboot or (last is None and not self._moved_before(traveller)):
            return ""
        if last and last.outcome in (Outcome.UNREACHABLE, Outcome.INTERRUPTED):
            return ""
        if last and traveller.state == State.UNTOUCHED:
            return ""
        if traveller.failure:
            return traveller.failure.says
        if broken := [f"{c.title}: {c.message}" for c in traveller.checks if c.failed]:
            return f"it does not do what it did: {'; '.join(broken)}"
        assert traveller.look is not None
        gone = rules.lost(self._before.get(traveller.name, frozenset()), traveller.look.findings)
        return f"this held before and does not now: {'; '.join(gone)}" if gone else ""

    def _by_hand(self, traveller: Traveller) -> str:
        name = self._snapshots.get(traveller.name)
        return f"`gpu-provision rollback {traveller.name} {name}` puts it back" if name else ""


def with_snapshot(managed: Managed, name: str, why: str) -> Managed:
    """The host with the snapshot named that this run takes of it first."""
    profile = managed.profile
    variables = {**profile.variables, "snapshot_name": name, "snapshot_why": why}
    return replace(managed, profile=replace(profile, variables=variables))


def earlier(hosts: Sequence[str]) -> tuple[dict[str, str], dict[str, Sequence[str]]]:
    """(snapshots, controls that passed before) of the last upgrade of each host, for one that goes on."""
    snapshots: dict[str, str] = {}
    before: dict[str, Sequence[str]] = {}
    for run in RunDirectory.newest_first(COMMAND):
        try:
            found: dict[str, Any] = json.loads((run.path / FILE).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        for host in hosts:
            if host in found["before"] and host not in before:
                before[host] = found["before"][host]
                if host in found["snapshots"]:
                    snapshots[host] = found["snapshots"][host]
    return snapshots, before
