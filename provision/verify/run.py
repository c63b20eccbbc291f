"""Run the suite over hosts, each in a process of its own, side by side."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import IO, TYPE_CHECKING

from ..converge.processes import kill_tree
from ..errors import Failure
from .result import Check, CheckStatus, Started, VerifyResult

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from pathlib import Path

    from .subject import Subject

FILES = ("test_ssh.py", "test_firewall.py", "test_gpu.py", "test_containers.py", "test_disks.py")
DISRUPTIVE = ("test_reboot.py",)
# What each role's work shows in; the others prove themselves while they run, or are seen in the findings.
SHOWS = {
    "ssh_hardening": "test_ssh.py",
    "firewall": "test_firewall.py",
    "nvidia_driver": "test_gpu.py",
    "fabric": "test_gpu.py",
    "gpu_settings": "test_gpu.py",
    "container_toolkit": "test_containers.py",
    "data_disks": "test_disks.py",
}
POLL_SECONDS = 0.2
# Longer than any single check gives its own commands, so that this ends only what hangs.
SILENCE_SECONDS = 150.0
REBOOT_SILENCE_SECONDS = 1800.0


def verify(
    subjects: Sequence[Subject],
    run_dir: Path,
    *,
    disruptive: bool = False,
    on_event: Callable[[Started | Check], None] = lambda event: None,
    forks: int = 20,
    only: Collection[str] = (),
) -> VerifyResult:
    """Prove the behaviour of each host from outside; `disruptive` adds what needs a reboot. With `only` what
    these roles are for is proven, and no more.

    A check that does not come back is ended and counts as failed; it costs no other host its checks.
    Writes verify.log below `run_dir`. Raises Failure where the suite itself did not run, and passes a
    KeyboardInterrupt on after ending every process that it started.
    """
    began = time.monotonic()
    stop, lock = threading.Event(), threading.Lock()

    def tell(event: Started | Check) -> None:
        with lock:
            on_event(event)

    shown = {SHOWS[role] for role in only if role in SHOWS}
    files = [name for name in FILES if not only or name in shown] + list(DISRUPTIVE if disruptive else ())
    if not files:
        return VerifyResult({s.name: () for s in subjects}, 0.0)
    silence = REBOOT_SILENCE_SECONDS if disruptive else SILENCE_SECONDS
    (run_dir / "verify.log").touch(mode=0o600)
    with (run_dir / "verify.log").open("ab") as log, ThreadPoolExecutor(max_workers=forks) as pool:
        running = {s.name: pool.submit(_one, s, files, log, tell, stop, silence) for s in subjects}
        try:
            checks = {name: future.result() for name, future in running.items()}
        except BaseException:
            stop.set()
            raise
    return VerifyResult(checks, time.monotonic() - began)


def _one(
    subject: Subject,
    files: list[str],
    log: IO[bytes],
    tell: Callable[[Started | Check], None],
    stop: threading.Event,
    silence: float,
) -> tuple[Check, ...]:
    reader = _Reader(subject.name, tell)
    read, write = os.pipe()
    argv = [sys.executable, "-P", "-m", "provision.verify.child", str(write), *files]
    with os.fdopen(read, "rb", buffering=0) as pipe:
        try:
            process = subprocess.Popen(
                argv,
                env=_environment(),
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                pass_fds=(write,),
                start_new_session=True,
            )
        finally:
            os.close(write)
        with process:
            assert process.stdin is not None
            process.stdin.write(json.dumps(subject.as_dict()).encode())
            process.stdin.close()
            try:
                hung = not _follow(pipe, reader, stop, silence)
            finally:
                _end(process)
    reader.close(f"no answer within {silence:.0f} s" if hung else "the suite broke off, see verify.log")
    if not reader.checks:
        raise Failure("the checks did not run; see verify.log in the run directory", host=subject.name)
    return tuple(reader.checks)


def _follow(pipe: IO[bytes], reader: _Reader, stop: threading.Event, silence: float) -> bool:
    """Read lines until the process closes its end; False where it was silent for too long or is to stop."""
    buffer, heard = b"", time.monotonic()
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while not stop.is_set() and time.monotonic() - heard < silence:
            if not selector.select(POLL_SECONDS):
                continue
            data = pipe.read(1 << 16)
            if not data:
                return True
            heard = time.monotonic()
            *lines, buffer = (buffer + data).split(b"\n")
            for line in lines:
                reader.take(json.loads(line))
    return False


def _end(process: subprocess.Popen[bytes]) -> None:
    """The process and all that it started are gone after this."""
    try:
        process.wait(timeout=2)
    except subprocess.TimeoutExpired:
        kill_tree(process.pid)


class _Reader:
    """Turns lines of the suite into checks."""

    def __init__(self, host: str, tell: Callable[[Started | Check], None]) -> None:
        self._host, self._tell = host, tell
        self._open: Started | None = None
        self.checks: list[Check] = []

    def take(self, line: dict[str, str]) -> None:
        if line["kind"] == "start":
            self._open = Started(self._host, line["check"], line["title"])
            self._tell(self._open)
            return
        status, seconds = CheckStatus(line["status"]), float(line["seconds"])
        self._add(Check(self._host, line["check"], line["title"], status, line["message"], seconds))

    def close(self, why: str) -> None:
        """A check that is still open failed; those after it were not made."""
        if self._open:
            says = f"{why}; later checks were not made"
            self._add(Check(self._host, self._open.name, self._open.title, CheckStatus.FAILED, says))

    def _add(self, check: Check) -> None:
        self._open = None
        self.checks.append(check)
        self._tell(check)


def _environment() -> dict[str, str]:
    """Ours without what steers pytest, testinfra or Python's own search for modules."""
    steering = ("PYTEST_", "PYTHON", "TESTINFRA")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(steering)}
    return {**kept, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONDONTWRITEBYTECODE": "1"}
