"""The folder of a run's control sockets. One whose run was killed is cleared away by the next.

A run holds a lock on its folder. The kernel lets go of it when the process ends, however that happens, so a
folder whose lock is free belongs to nobody any more; the masters that wait in it are then told to end.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Self

from . import child

PLACE = Path("/tmp")  # short, because a control socket's path may have 104 bytes
PREFIX = "gp-run-"
# Younger folders are left alone: their run may be about to take the lock. Seconds.
YOUNG = 30.0


class ControlFolder:
    """A folder for sockets, mode 0700 and ours until it is closed."""

    def __init__(self) -> None:
        _sweep()
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=PLACE))
        self._lock = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove the folder with what is in it. Sessions have to be closed before."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)


def _sweep() -> None:
    """Clear away the folders of runs that are gone. What cannot be looked at is left alone."""
    for folder in PLACE.glob(f"{PREFIX}*"):
        with suppress(OSError):
            found = folder.lstat()
            if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
                continue  # a link, or somebody else's
            if time.time() - found.st_mtime < YOUNG:
                continue
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _end(folder)
            finally:
                os.close(descriptor)


def _end(folder: Path) -> None:
    for socket in folder.iterdir():
        with suppress(child.TimedOut, OSError):
            child.run(["ssh", "-o", f"ControlPath={socket}", "-O", "exit", "--", "gone"], timeout=5)
    shutil.rmtree(folder, ignore_errors=True)
