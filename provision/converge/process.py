"""Run ansible-playbook as a process of its own, read along, and end it within a bound."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

POLL_SECONDS = 0.2
ESCALATE_SECONDS = 5.0


class _Stop(IntEnum):
    NO = 0
    ASKED = 1
    INTERRUPTED = 2
    TERMINATED = 3
    KILLED = 4


class Playbook:
    """One ansible-playbook process in its own session, so that a Ctrl-C at the terminal reaches us alone.

    `grace` is how many seconds the running tasks get to end after a stop was asked for.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        env: dict[str, str],
        log: IO[bytes],
        stop_file: Path,
        grace: float,
    ) -> None:
        self._stop_file, self._grace = stop_file, grace
        self._stop, self._since = _Stop.NO, 0.0
        self._started: set[Process] = set()
        self._read, write = os.pipe()
        try:
            self._process = subprocess.Popen(
                argv,
                cwd=cwd,
                env={**env, "GPU_PROVISION_EVENTS_FD": str(write), "GPU_PROVISION_STOP_FILE": str(stop_file)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                pass_fds=(write,),
                start_new_session=True,
            )
        finally:
            os.close(write)

    @property
    def stopped(self) -> bool:
        """True once a stop was asked for."""
        return self._stop is not _Stop.NO

    def follow(
        self, on_line: Callable[[str], None], wants_stop: Callable[[], bool], on_stop: Callable[[], None]
    ) -> int:
        """Give every line to `on_line` until the process ended; its exit code.

        A stop is asked for where `wants_stop` says so or at the first KeyboardInterrupt, which calls
        `on_stop`; a second one no longer waits. No process of the run is left behind.
        """
        buffer = b""
        os.set_blocking(self._read, False)
        with selectors.DefaultSelector() as selector:
            selector.register(self._read, selectors.EVENT_READ)
            while True:
                try:
                    if not self.stopped and wants_stop():
                        self._ask(on_stop)
                    self._escalate_if_due()
                    ready = selector.select(POLL_SECONDS)
                    data = self._take() if ready else None
                    if data:
                        *lines, buffer = (buffer + data).split(b"\n")
                        for line in lines:
                            on_line(line.decode("utf-8", "replace"))
                    if data == b"" or (not ready and self._process.poll() is not None):
                        break
                except KeyboardInterrupt:
                    if self.stopped:
                        self._escalate()
                    else:
                        self._ask(on_stop)
        return self._finish()

    def _take(self) -> bytes | None:
        try:
            return os.read(self._read, 1 << 16)
        except BlockingIOError:
            return None

    def _ask(self, on_stop: Callable[[], None]) -> None:
        self._stop_file.touch()
        self._stop, self._since = _Stop.ASKED, time.monotonic()
        on_stop()

    def _escalate_if_due(self) -> None:
        wait = self._grace if self._stop is _Stop.ASKED else ESCALATE_SECONDS
        if self.stopped and self._stop is not _Stop.KILLED and time.monotonic() - self._since > wait:
            self._escalate()

    def _escalate(self) -> None:
        """Interrupt, then terminate, then kill. Ansible passes the first two on to its workers."""
        self._stop = _Stop(min(self._stop + 1, _Stop.KILLED))
        self._since = time.monotonic()
        # Whose parent ends first can no longer be found later.
        self._started |= descendants(self._process.pid)
        if self._stop is _Stop.KILLED:
            kill(self._started)
            _signal(self._process.pid, signal.SIGKILL)
        else:
            _signal(self._process.pid, signal.SIGINT if self._stop is _Stop.INTERRUPTED else signal.SIGTERM)

    def _finish(self) -> int:
        """Wait for the end, escalating where a stop was asked for; close up."""
        try:
            while True:
                try:
                    return self._process.wait(POLL_SECONDS)
                except subprocess.TimeoutExpired:
                    self._escalate_if_due()
                except KeyboardInterrupt:
                    self._stop = max(self._stop, _Stop.ASKED)
                    self._escalate()
        finally:
            kill(self._started)
            os.close(self._read)


@dataclass(frozen=True)
class Process:
    """A process and when it began, in clock ticks after boot: its number alone may be another's later."""

    pid: int
    began: int


def descendants(pid: int) -> set[Process]:
    """All processes below `pid`.

    Ansible's workers lead sessions of their own, so ending a process group is not enough.
    """
    children: dict[int, list[Process]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        if (fields := _stat(int(folder.name))) is not None:
            children.setdefault(int(fields[1]), []).append(Process(int(folder.name), int(fields[19])))
    found: set[Process] = set()
    queue = [pid]
    while queue:
        below = children.get(queue.pop(), [])
        found.update(below)
        queue += [process.pid for process in below]
    return found


def kill(processes: Iterable[Process]) -> None:
    """Kill those that are still there."""
    for process in processes:
        fields = _stat(process.pid)
        if fields is not None and int(fields[19]) == process.began:
            _signal(process.pid, signal.SIGKILL)


def _stat(pid: int) -> list[str] | None:
    """The fields of /proc/PID/stat from the third on (proc_pid_stat(5)); None where the process is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None


def _signal(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)
