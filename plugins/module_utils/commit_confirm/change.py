"""Make a change that puts itself back unless it is confirmed: arm, write, validate, reload."""

from __future__ import annotations

import contextlib
import json
import shlex
import shutil
import subprocess
import time
from typing import Any

from . import files, snapshot, timer
from .state import (
    GRACE,
    Places,
    about,
    fsync_directory,
    locked,
    remaining,
    state_of,
    transaction_of,
    write_whole,
)

VALIDATE_SECONDS = 30
RELOAD_SECONDS = 60


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
        self.validate: list[dict[str, Any]] = given["validate"]
        self.reload: list[str] = given["reload"]


def apply(places: Places, request: Request) -> float:
    """Arm, write, validate, reload. Returns the seconds that are left to confirm. Raises Stopped."""
    if state_of(places, request.transaction) != "untouched":
        # Ansible runs a module again when the line drops under it.
        state = revert(places, request.transaction)
        raise Stopped("the line was lost while the change was being made", state)
    arm(places, request)
    try:
        write(places, request)
        for check in request.validate:
            _validate(check)
        for command in request.reload:
            # Putting back reloads only what may have been reloaded already.
            (places.of("armed", request.transaction) / "reloading").touch()
            done = _run(command, RELOAD_SECONDS)
            if done.returncode != 0:
                raise Stopped(f"`{command}` failed: {_words(done)}", "armed")
    except (Stopped, OSError, snapshot.SnapshotError, TimeoutError) as e:
        raise Stopped(str(e), revert(places, request.transaction)) from e
    return remaining(places, places.of("armed", request.transaction))


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
            write_whole(new / "reload", _script(request.reload), 0o600)
            write_whole(new / "check", _script([check["command"] for check in request.validate]), 0o600)
            timer.write_units(places)
            timer.start(places, request.transaction, request.seconds)
            told = {
                "id": request.transaction, "name": request.name, "holder": request.holder,
                "seconds": request.seconds, "armed_at": time.monotonic(), "boot": places.boot(),
            }  # fmt: skip
            write_whole(new / "about", json.dumps(told).encode(), 0o600)
            fsync_directory(new)
            new.rename(armed)
            fsync_directory(places.state)
    except (OSError, subprocess.SubprocessError, TimeoutError, snapshot.SnapshotError, timer.TimerError) as e:
        _undo_arming(places, request.transaction)
        raise Stopped(f"could not be armed: {e}", "untouched") from e


def write(places: Places, request: Request) -> None:
    """Put every file in place, as long as the state is still armed. Raises OSError or Stopped."""
    with locked(places):
        for difference in files.differences(request.files):
            if not places.of("armed", request.transaction).is_dir():
                raise Stopped("the timer took the state back before everything was written", "reverted")
            files.put(difference)


def confirm(places: Places, transaction: str) -> str:
    """Keep the change. Returns the truth: done, or reverted (or reverting) where the timer came first."""
    try:
        places.of("armed", transaction).rename(places.of("done", transaction))
    except FileNotFoundError:
        return settled(places, transaction)
    with contextlib.suppress(OSError):
        fsync_directory(places.state)
    timer.stop(transaction)
    # The script has nothing to take back any more; it removes the copies beside the files and the boot unit.
    timer.put_back(places, transaction)
    return "done"


def revert(places: Places, transaction: str) -> str:
    """Put the old state back now. Returns the truth: reverted, done, or reverting (not all of it yet)."""
    with contextlib.suppress(OSError):
        (places.of("armed", transaction) / "why").write_text("asked\n")
    timer.fire(places, transaction)
    state = settled(places, transaction, seconds=5.0)
    timer.stop(transaction)
    return state


def revert_all(places: Places, transaction: str = "") -> dict[str, Any]:
    """Put back one transaction, or whatever is armed. Returns `changed`, `state` and the `ids` put back."""
    standing = places.standing("armed") + places.standing("reverting")
    ids = [transaction] if transaction else [transaction_of(d) for d in standing]
    states = [revert(places, each) for each in ids]
    return {
        "changed": bool(standing),
        "ids": ids,
        "state": next((s for s in states if s != "reverted"), "reverted") if states else "untouched",
    }


def settled(places: Places, transaction: str, seconds: float = 120.0) -> str:
    """The state of a transaction once nobody works on it any more."""
    end = time.monotonic() + seconds
    while (state := state_of(places, transaction)) == "reverting" and time.monotonic() < end:
        time.sleep(0.2)
    return state


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
        how = (
            f"has {left:.0f} s left to confirm it" if left else f"not all of it is put back, see {directory}"
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


def _validate(check: dict[str, Any]) -> None:
    done = _run(check["command"], VALIDATE_SECONDS)
    if done.returncode != 0:
        raise Stopped(f"`{check['command']}` failed: {_words(done)}", "armed")
    said = {" ".join(line.lower().split()) for line in done.stdout.splitlines()}
    for line in check["lines"]:
        if " ".join(line.lower().split()) not in said:
            raise Stopped(f"`{check['command']}` does not say `{line}`: something overrides it", "armed")


def _run(command: str, seconds: int) -> subprocess.CompletedProcess[str]:
    argv = shlex.split(command)
    try:
        return subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=seconds
        )
    except subprocess.TimeoutExpired:
        raise Stopped(f"`{command}` did not end within {seconds} s", "armed") from None


def _words(done: subprocess.CompletedProcess[str]) -> str:
    return (done.stderr.strip() or done.stdout.strip() or f"exit status {done.returncode}")[-600:]
