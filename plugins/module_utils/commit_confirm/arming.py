"""Keep the old state and start the timer; the host is untouched until both are certain."""

from __future__ import annotations

import contextlib
import json
import shlex
import shutil
import subprocess
import time
from typing import Any

from . import loaded, snapshot, timer
from .state import (
    GRACE,
    Places,
    about,
    fsync_directory,
    locked,
    remaining,
    transaction_of,
    write_whole,
)


class Stopped(Exception):
    """The change did not come about. `state` is the truth after it: untouched, reverted or reverting."""

    def __init__(self, says: str, state: str) -> None:
        self.says, self.state = says, state
        super().__init__(says)


class Request:
    """What to change. `files` have path, text (None: must not be there), mode, owner (None: kept)."""

    def __init__(self, given: dict[str, Any]) -> None:
        self.transaction: str = given["id"]
        self.name: str = given["name"]
        self.holder: str = given["holder"]
        self.seconds: int = given["seconds"]
        self.files: list[dict[str, Any]] = given["files"]
        self.paths: list[str] = given["paths"]
        self.units: list[str] = given["units"]
        self.loaded: list[dict[str, Any]] = given["loaded"]
        self.validate: list[dict[str, Any]] = given["validate"]
        self.load: list[str] = given["load"]
        self.reload: list[str] = given["reload"]


def arm(places: Places, request: Request) -> None:
    """Keep the old state and start the timer. Raises Stopped; the host is then untouched."""
    if not places.systemd.is_dir():
        raise Stopped("systemd does not run here, and its timer is what puts the old state back", "untouched")
    new, armed = places.of("new", request.transaction), places.of("armed", request.transaction)
    try:
        places.state.mkdir(mode=0o700, parents=True, exist_ok=True)
        _recover(places)
        with locked(places):
            _refuse_second(places)
            _sweep(places)
            new.mkdir(mode=0o700)
            paths = [f["path"] for f in request.files] + request.paths
            snapshot.take(new, request.transaction, paths)
            snapshot.take_units(new, request.units)
            loaded.take(new, request.loaded)
            write_whole(new / "reload", _script(request.reload), 0o600)
            write_whole(new / "check", _script([check["command"] for check in request.validate]), 0o600)
            timer.write_units(places)
            timer.start(places, request.transaction, request.seconds)
            told = {
                "id": request.transaction, "name": request.name, "holder": request.holder,
                "seconds": request.seconds, "armed_at": time.monotonic(), "boot": places.boot(),
            }  # fmt: skip
            write_whole(new / "boot", f"{places.boot()}\n".encode(), 0o600)
            shown = " ".join(f"{request.name or 'a change'}, by {request.holder or 'somebody'}".split())
            write_whole(new / "shown", f"{shown}\n".encode(), 0o600)
            write_whole(new / "about", json.dumps(told).encode(), 0o600)
            fsync_directory(new)
            new.rename(armed)
            fsync_directory(places.state)
    except (OSError, subprocess.SubprocessError, TimeoutError, snapshot.SnapshotError, timer.TimerError) as e:
        _undo_arming(places, request.transaction)
        raise Stopped(f"could not be armed: {e}", "untouched") from e


def _recover(places: Places) -> None:
    """Put back what its timer forgot: one that was stopped by hand, or a boot without the unit."""
    for directory in places.standing("armed") + places.standing("reverting"):
        if remaining(places, directory) <= -GRACE:
            timer.put_back(places, transaction_of(directory))


def _refuse_second(places: Places) -> None:
    """One armed state a host."""
    for directory in places.standing("armed") + places.standing("reverting"):
        told = about(directory)
        left = max(0.0, remaining(places, directory))
        who = f"{told.get('holder', 'another run')} is changing {told.get('name') or 'this host'}"
        # What is going back already can no longer be confirmed, however much of its time is left.
        waits = left and directory.name.startswith("armed.")
        how = (
            f"has {left:.0f} s left to confirm it" if waits else f"not all of it is put back, see {directory}"
        )
        raise Stopped(f"{who} and {how}", "untouched")


def _sweep(places: Places) -> None:
    """Forget how earlier ones ended, and what a killed run left half-built."""
    for stage in ("done", "reverted", "new"):
        for directory in places.standing(stage):
            snapshot.forget(directory, transaction_of(directory))
            shutil.rmtree(directory)


def _undo_arming(places: Places, transaction: str) -> None:
    timer.stop(transaction)
    new = places.of("new", transaction)
    snapshot.forget(new, transaction)
    shutil.rmtree(new, ignore_errors=True)
    if not places.standing("armed") and not places.standing("reverting"):
        with contextlib.suppress(OSError):
            timer.remove_units(places)


def _script(commands: list[str]) -> bytes:
    """Commands for the revert script's sh, one a line."""
    return "".join(f"{shlex.join(shlex.split(command))}\n" for command in commands).encode()
