"""What is armed on a host. The name of one directory says it, so that one rename(2) decides a race.

Below the state directory: `new.ID` is being built and counts for nothing; `armed.ID` waits for its
confirmation; `reverting.ID` is being put back; `done.ID` and `reverted.ID` are how the last one ended.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

BOOT_UNIT = "gpu-provision-revert.service"

# How long after its time an armed state may stand before it counts as forgotten by its timer, seconds.
GRACE = 30.0


class Places:
    """The directories that commit_confirm writes to, apart from the files it was asked to change."""

    def __init__(
        self,
        state: str = "/var/lib/gpu-provision/commit-confirm",
        units: str = "/etc/systemd/system",
        boot_id: str = "/proc/sys/kernel/random/boot_id",
        systemd: str = "/run/systemd/system",
    ) -> None:
        self.state = Path(state)
        self.units = Path(units)
        self.boot_id = Path(boot_id)
        self.systemd = Path(systemd)

    @property
    def script(self) -> Path:
        return self.state / "commit-confirm.sh"

    def boot(self) -> str:
        return self.boot_id.read_text().strip()

    def of(self, stage: str, transaction: str) -> Path:
        return self.state / f"{stage}.{transaction}"

    def standing(self, stage: str) -> list[Path]:
        """The directories of one stage, oldest first."""
        found = [p for p in self.state.glob(f"{stage}.*") if p.is_dir()]
        return sorted(found, key=lambda p: p.stat().st_mtime)


@contextlib.contextmanager
def locked(places: Places, seconds: float = 20.0) -> Iterator[int]:
    """Hold the host's lock, the one the revert script takes too; its file descriptor.

    A child that is given the descriptor holds the lock with us. Raises TimeoutError when it stays taken.
    """
    with (places.state / "lock").open("a") as handle:
        end = time.monotonic() + seconds
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > end:
                    raise TimeoutError(f"{handle.name} stays locked by another process") from None
                time.sleep(0.1)
        yield handle.fileno()


def about(directory: Path) -> dict[str, Any]:
    """Who armed it, when (monotonic seconds of which boot) and for how long; {} where unreadable."""
    try:
        document = json.loads((directory / "about").read_text())
    except (OSError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}


def remaining(places: Places, directory: Path) -> float:
    """Seconds until the timer takes an armed transaction back; negative when it should have."""
    told = about(directory)
    if told.get("boot") != places.boot():
        return -GRACE
    return float(told.get("armed_at", 0.0)) + float(told.get("seconds", 0.0)) - time.monotonic()


def status(places: Places) -> dict[str, Any]:
    """What is true on the host now: `state` is idle, armed or reverting; `last` is how the last one ended."""
    answer: dict[str, Any] = {"state": "idle", "armed": None, "last": _last(places)}
    for stage in ("armed", "reverting"):
        for directory in places.standing(stage):
            told = about(directory)
            answer["state"] = stage
            answer["armed"] = {
                "id": transaction_of(directory),
                "name": told.get("name", ""),
                "holder": told.get("holder", "unknown"),
                "remaining": round(max(0.0, remaining(places, directory)), 1),
            }
    return answer


def state_of(places: Places, transaction: str) -> str:
    """The stage of one transaction: armed, reverting, done, reverted; or untouched where it left no trace."""
    for stage in ("armed", "reverting", "reverted", "done"):
        if places.of(stage, transaction).is_dir():
            return stage
    return "untouched"


def transaction_of(directory: Path) -> str:
    return directory.name.split(".", 1)[1]


def _last(places: Places) -> dict[str, Any] | None:
    ended = [(p, stage) for stage in ("done", "reverted") for p in places.standing(stage)]
    if not ended:
        return None
    directory, stage = max(ended, key=lambda pair: pair[0].stat().st_ctime)
    told = about(directory)
    why = directory / "why"
    return {
        "id": transaction_of(directory),
        "name": told.get("name", ""),
        "holder": told.get("holder", "unknown"),
        "state": stage,
        "why": why.read_text().strip() if why.is_file() else "",
    }


def fsync_directory(path: Path) -> None:
    handle = os.open(str(path), os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_whole(path: Path, data: bytes, mode: int) -> None:
    """Write a file that is either there complete and on disk, or not at all. The caller renames it."""
    handle = os.open(str(path), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(data)
            out.flush()
            os.fchmod(out.fileno(), mode)
            os.fsync(out.fileno())
    except OSError:
        path.unlink()
        raise
