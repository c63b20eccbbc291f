"""Make a change that puts itself back unless it is confirmed: arm, write, validate, make effective."""

from __future__ import annotations

import shlex
import subprocess
from typing import Any

from . import files, snapshot
from .arming import Request, Stopped, arm
from .ending import revert
from .state import Places, locked, remaining, state_of

VALIDATE_SECONDS = 30
RELOAD_SECONDS = 60


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
        for command in request.load + request.reload:
            _make_effective(places, request.transaction, command)
    except (Stopped, OSError, snapshot.SnapshotError, TimeoutError) as e:
        raise Stopped(str(e), revert(places, request.transaction)) from e
    return remaining(places, places.of("armed", request.transaction))


def arm_only(places: Places, request: Request) -> float:
    """Arm for a change that others make. Returns the seconds that are left to confirm. Raises Stopped."""
    if state_of(places, request.transaction) != "untouched":
        raise Stopped("the line was lost while it was being armed", revert(places, request.transaction))
    arm(places, request)
    try:
        with locked(places):
            _begun(places, request.transaction)
    except (OSError, Stopped) as e:
        raise Stopped(str(e), revert(places, request.transaction)) from e
    return remaining(places, places.of("armed", request.transaction))


def write(places: Places, request: Request) -> None:
    """Put every file in place, as long as the state is still armed. Raises OSError or Stopped."""
    with locked(places):
        for difference in files.differences(request.files):
            _still_armed(places, request.transaction)
            files.put(difference)


def _make_effective(places: Places, transaction: str, command: str) -> None:
    """Run one command. The timer waits for its end, even if we are killed: what it does has to be undone."""
    with locked(places) as lock:
        _begun(places, transaction)
        done = _run(command, RELOAD_SECONDS, holds=(lock,))
    if done.returncode != 0:
        raise Stopped(f"`{command}` failed: {_words(done)}", "armed")


def _begun(places: Places, transaction: str) -> None:
    """From here on putting back has to make the old state effective, too; before, nobody loaded the new."""
    _still_armed(places, transaction)
    (places.of("armed", transaction) / "begun").touch()


def _still_armed(places: Places, transaction: str) -> None:
    armed = places.of("armed", transaction)
    if not armed.is_dir() or remaining(places, armed) <= 0:
        raise Stopped("the timer took the state back before the change was complete", "reverted")


def _validate(check: dict[str, Any]) -> None:
    done = _run(check["command"], VALIDATE_SECONDS)
    if done.returncode != 0:
        raise Stopped(f"`{check['command']}` failed: {_words(done)}", "armed")
    said = {" ".join(line.lower().split()) for line in done.stdout.splitlines()}
    for line in check["lines"]:
        if " ".join(line.lower().split()) not in said:
            raise Stopped(f"`{check['command']}` does not say `{line}`: something overrides it", "armed")


def _run(command: str, seconds: int, holds: tuple[int, ...] = ()) -> subprocess.CompletedProcess[str]:
    """Run a command without a shell; it keeps the descriptors `holds` open."""
    argv = shlex.split(command)
    try:
        return subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
            timeout=seconds, pass_fds=holds,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise Stopped(f"`{command}` did not end within {seconds} s", "armed") from None


def _words(done: subprocess.CompletedProcess[str]) -> str:
    return (done.stderr.strip() or done.stdout.strip() or f"exit status {done.returncode}")[-600:]
