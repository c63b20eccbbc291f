"""Runs one child process to its end, its time limit or Ctrl-C, and leaves none of its kind behind."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import threading
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True)
class Completed:
    """How a command ended. `rc` is its exit status, or 128 plus the signal that ended it."""

    rc: int
    stdout: bytes
    stderr: bytes

    @property
    def out(self) -> str:
        return self.stdout.decode("utf-8", "replace")

    @property
    def err(self) -> str:
        return self.stderr.decode("utf-8", "replace")


class TimedOut(Exception):
    """The child did not end within its limit; it and its group were killed.

    `seconds` is that limit, `stderr` what it had said until then.
    """

    def __init__(self, seconds: float, stderr: bytes) -> None:
        super().__init__(f"no end within {seconds:g} s")
        self.seconds, self.stderr = seconds, stderr


_running: set[subprocess.Popen[bytes]] = set()
_lock = threading.Lock()


def stop_all() -> None:
    """Kill every child that runs now, in whichever thread.

    Ctrl-C reaches the main thread only, and the children are in groups of their own. Their callers see
    an end by signal.
    """
    with _lock:
        for child in _running:
            _kill(child)


def run(
    argv: Sequence[str],
    stdin: bytes = b"",
    timeout: float | None = None,
    env: Mapping[str, str] | None = None,
) -> Completed:
    """Run `argv` in a process group of its own. Raises TimedOut, and OSError where it cannot be started.

    Standard error goes to a file and not to a pipe: an ssh that stays behind as a master may keep it open.
    """
    with tempfile.TemporaryFile() as errors:
        # Started and noted in one step: a child that stop_all() does not see would outlive a Ctrl-C.
        with _lock:
            child = subprocess.Popen(
                argv,
                stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=env,
                start_new_session=True,
            )
            _running.add(child)
        try:
            out, _ = child.communicate(stdin or None, timeout)
        except subprocess.TimeoutExpired as e:
            _end(child)
            errors.seek(0)
            raise TimedOut(timeout or 0.0, errors.read()) from e
        except BaseException:  # Ctrl-C above all: nothing of ours may run on
            _end(child)
            raise
        finally:
            with _lock:
                _running.discard(child)
        errors.seek(0)
        rc = child.returncode if child.returncode >= 0 else 128 - child.returncode
        return Completed(rc, out, errors.read())


def _kill(child: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)


def _end(child: subprocess.Popen[bytes]) -> None:
    _kill(child)
    for stream in (child.stdin, child.stdout):
        if stream:
            with suppress(OSError):
                stream.close()
    child.wait()
