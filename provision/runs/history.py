"""What earlier runs did to a host, read from their run directories on this machine."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .directory import RunDirectory

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Past:
    """One run as it was for one host. `ended` is false for a run that came to no report: it was killed."""

    run: str
    path: Path
    command: str
    state: str
    taken: str = ""
    seconds: float = 0.0
    roles: tuple[str, ...] = ()
    snapshot: str = ""
    trouble: str = ""
    ended: bool = True


def history(host: str) -> tuple[Past, ...]:
    """The runs of this machine that had a host, newest first; one whose files cannot be read is left out."""
    found = (_past(run, host) for run in RunDirectory.newest_first(""))
    return tuple(past for past in found if past is not None)


def _past(run: RunDirectory, host: str) -> Past | None:
    try:
        state = run.states().get(host)
    except (OSError, ValueError, KeyError):
        return None
    if state is None:
        return None
    name = run.path.name
    command = name.split("-")[1] if "-" in name else ""
    report = _read(run.path / "report.json")
    mine = next((h for h in report.get("hosts", ()) if h.get("host") == host), None)
    snapshot = _read(run.path / "upgrade.json").get("snapshots", {}).get(host, "")
    snapshot = snapshot or _read(run.path / "plan.json").get("snapshot", "")
    if mine is None:
        # What has no report of its own, such as a snapshot, has no more to tell than its state.
        killed = command not in ("snapshot", "snapshots")
        return Past(name, run.path, command, state, snapshot=snapshot, ended=not killed)
    return Past(
        run=name,
        path=run.path,
        command=command,
        state=state,
        taken=report.get("taken", ""),
        seconds=float(report.get("seconds", 0.0)),
        roles=tuple(role for each in mine.get("passes", ()) for role in each.get("roles_done", ())),
        snapshot=snapshot,
        trouble=mine.get("trouble") or mine.get("reboot") or "",
    )


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
