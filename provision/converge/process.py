"""Run ansible-playbook as a process of its own, read along, and end it within a bound."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import threading
import time
from contextlib import contextmanager, suppress
from enum import IntEnum
from typing import IO, TYPE_CHECKING

from .processes import Process, descendants, kill, kill_tree, send

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

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

    A stop is asked for where `wants_stop` says so, or by Ctrl-C or SIGTERM; `on_stop` is then called, and
    the running tasks have `grace` seconds to end. A second Ctrl-C no longer waits.
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
        wants_stop: Callable[[], bool],
        on_stop: Callable[[], None],
    ) -> None:
        self._stop_file, self._grace = stop_file, grace
        self._wants_stop, self._on_stop = wants_stop, on_stop
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

    def follow(self, on_line: Callable[[str], None]) -> int:
        """Give every line to `on_line` until the process ended; its exit code.

        No process of the run is left behind, whatever happens.
        """
        try:
            with _asked() as asks:
                self._read_along(on_line, asks)
                while self._process.poll() is None:
                    self._heed(asks)
                    with suppress(subprocess.TimeoutExpired):
                        self._process.wait(POLL_SECONDS)
            return self._process.returncode
        finally:
            if self._process.poll() is None:
                kill_tree(self._process.pid)
                self._process.wait()
            kill(self._started)
            os.close(self._read)

    def _read_along(self, on_line: Callable[[str], None], asks: list[int]) -> None:
        buffer = b""
        os.set_blocking(self._read, False)
        with selectors.DefaultSelector() as selector:
            selector.register(self._read, selectors.EVENT_READ)
            while True:
                self._heed(asks)
                ready = selector.select(POLL_SECONDS)
                data = self._take() if ready else None
                if data:
                    *lines, buffer = (buffer + data).split(b"\n")
                    for line in lines:
                        on_line(line.decode("utf-8", "replace"))
                # A process that outlives Ansible may hold the other end open.
                if data == b"" or (not ready and self._process.poll() is not None):
                    return

    def _heed(self, asks: list[int]) -> None:
        """Act on what was asked since the last look: ask for a stop, then insist."""
        if not self.stopped and (asks or self._wants_stop()):
            asks.clear()
            self._stop_file.touch()
            self._stop, self._since = _Stop.ASKED, time.monotonic()
            self._on_stop()
        wait = self._grace if self._stop is _Stop.ASKED else ESCALATE_SECONDS
        overdue = self._stop is not _Stop.KILLED and time.monotonic() - self._since > wait
        if self.stopped and (asks or overdue):
            asks.clear()
            self._escalate()

    def _take(self) -> bytes | None:
        try:
            return os.read(self._read, 1 << 16)
        except BlockingIOError:
            return None

    def _escalate(self) -> None:
        """Interrupt, then terminate, then kill. Ansible passes the first two on to its workers."""
        self._stop = _Stop(min(self._stop + 1, _Stop.KILLED))
        self._since = time.monotonic()
        # Whose parent ends first can no longer be found later.
        self._started |= descendants(self._process.pid)
        if self._stop is _Stop.KILLED:
            kill_tree(self._process.pid)
        else:
            send(self._process.pid, signal.SIGINT if self._stop is _Stop.INTERRUPTED else signal.SIGTERM)


@contextmanager
def _asked() -> Iterator[list[int]]:
    """Signals that ask for an end, noted one by one instead of raised: no event is lost half-read.

    Only the main thread may receive them; elsewhere the list stays empty.
    """
    asks: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield asks
        return
    before = {
        n: signal.signal(n, lambda number, frame: asks.append(number))
        for n in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield asks
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
