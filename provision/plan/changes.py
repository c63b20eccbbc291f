"""What a role will change on a host: its planner's answer against what the recording shows."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from ..facts.known import Absent, Unknown
from .model import Change

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..facts import Facts
    from ..planners.wanted import File, Wanted


def changes(wanted: Wanted, facts: Facts) -> tuple[Change, ...]:
    """Files, packages, holds and units that are not yet as wanted, and the steps beside them."""
    packages = tuple(_packages(wanted, facts))
    return (
        *_files(wanted, facts),
        *(_waiting(facts) if packages else ()),
        *packages,
        *(Change(step) for step in wanted.steps),
        *_holds(wanted, facts),
        *_units(wanted, facts),
    )


def _files(wanted: Wanted, facts: Facts) -> Iterator[Change]:
    for file in wanted.files:
        now = facts.file(file.path)
        if isinstance(now, Unknown):
            yield Change(f"{file.path} (what it holds now is unknown: {now.reason})")
        elif isinstance(now, Absent):
            if file.text is not None:
                yield Change(f"write {file.path}", _diff(file, ""))
        elif file.text is None:
            yield Change(f"remove {file.path}", _diff(file, now))
        elif now != file.text:
            yield Change(f"change {file.path}", _diff(file, now))
    for line in wanted.first_lines:
        yield Change(f"put `{line.first_line}` on top of {line.path}")


def _diff(file: File, now: str) -> str:
    lines = difflib.unified_diff(
        now.splitlines(), (file.text or "").splitlines(), f"{file.path} (now)", file.path, lineterm=""
    )
    return "\n".join(lines)


def _waiting(facts: Facts) -> Iterator[Change]:
    """Whom the packages have to wait for first."""
    locks = facts.apt_locks
    for lock in () if isinstance(locks, Unknown) else locks[:1]:
        who = f"process {lock.pid}" + (f" ({lock.program})" if lock.program else "")
        yield Change(f"wait for {who}, which holds {lock.path} now", passing=True)


def _packages(wanted: Wanted, facts: Facts) -> Iterator[Change]:
    packages = facts.packages
    for entry in wanted.packages:
        name, _, version = entry.partition("=")
        installed = None if isinstance(packages, Unknown) else packages.get(name)
        if installed is None:
            yield Change(f"install {name}{f' {version}' if version else ''}")
        elif version and installed.version != version:
            yield Change(f"move {name} from {installed.version} to {version}")


def _holds(wanted: Wanted, facts: Facts) -> Iterator[Change]:
    held = frozenset[str]() if isinstance(facts.holds, Unknown) else facts.holds
    if missing := [name for name in wanted.holds if name not in held]:
        yield Change(f"hold {', '.join(missing)}")


def _units(wanted: Wanted, facts: Facts) -> Iterator[Change]:
    units = facts.units
    for unit in wanted.units:
        state = None if isinstance(units, Unknown | Absent) else units.get(unit.name)
        enabled = state is not None and state.starts_at_boot
        active = state is not None and state.runs
        if unit.enabled is not None and enabled != unit.enabled:
            yield Change(f"{'enable' if unit.enabled else 'disable'} {unit.name}")
        if unit.active is not None and active != unit.active:
            yield Change(f"{'start' if unit.active else 'stop'} {unit.name}")
