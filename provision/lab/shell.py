"""Running the machine's own tools, and locks between runs of the lab."""

from __future__ import annotations

import fcntl
import os
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..errors import Failure

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


def run(
    argv: Sequence[str | Path], *, stdin: str = "", check: bool = True
) -> subprocess.CompletedProcess[str]:
    """Runs a tool and returns what it said.

    Raises Failure with the tool's last words where it ends with another code than 0 and `check` is set.
    """
    words = [str(word) for word in argv]
    environment = plain_environment()
    done = subprocess.run(
        words, input=stdin, capture_output=True, text=True, errors="replace", check=False, env=environment
    )
    if check and done.returncode:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()[-8:]
        raise Failure(f"{words[0]} ended with code {done.returncode}: " + "\n  ".join(said))
    return done


def plain_environment() -> dict[str, str]:
    """The machine's environment with messages in English and the system's own tools first."""
    return {
        **os.environ,
        "LC_ALL": "C.UTF-8",
        "PATH": "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin",
    }


@contextmanager
def lock(path: Path, *, wait: bool = True) -> Iterator[bool]:
    """Holds an exclusive lock for the block; the kernel lets go of it when this process ends, in any way.

    Yields False, without the lock, where another holds it and `wait` is not set.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
            return
        yield True
