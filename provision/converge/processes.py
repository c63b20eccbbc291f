"""The processes of a run, found through /proc and ended, whoever started them."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection


PATIENCE_SECONDS = 2.0


@dataclass(frozen=True)
class Process:
    """A process and when it began, in clock ticks after boot: its number alone may be another's later."""

    pid: int
    began: int


def descendants(pid: int) -> set[Process]:
    """All processes below `pid` that still run.

    Ansible's workers lead sessions of their own, so ending a process group is not enough.
    """
    children: dict[int, list[Process]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        fields = _stat(int(folder.name))
        if fields is not None and fields[0] != "Z":
            children.setdefault(int(fields[1]), []).append(Process(int(folder.name), int(fields[19])))
    found: set[Process] = set()
    queue = [pid]
    while queue:
        below = children.get(queue.pop(), [])
        found.update(below)
        queue += [process.pid for process in below]
    return found


def kill_tree(pid: int) -> None:
    """Kill a process and everything below it.

    All are stopped first: a stopped process starts no other, so none escapes between looking and killing.
    """
    frozen: set[Process] = set()
    found = _itself(pid)
    while found:
        for process in found:
            send(process.pid, signal.SIGSTOP)
        _await(found, "T")
        frozen |= found
        found = descendants(pid) - frozen
    kill(frozen)


def kill(processes: Collection[Process]) -> None:
    """Kill those that are still there, and wait a moment until they are gone."""
    for process in processes:
        if _state(process) is not None:
            send(process.pid, signal.SIGKILL)
    _await(processes, "")


def _await(processes: Collection[Process], state: str) -> None:
    """Wait until each is in this state (T: stopped) or gone; not for one that hangs in the kernel."""
    until = time.monotonic() + PATIENCE_SECONDS
    while any(_state(p) not in (None, state) for p in processes) and time.monotonic() < until:
        time.sleep(0.005)


def _itself(pid: int) -> set[Process]:
    fields = _stat(pid)
    return {Process(pid, int(fields[19]))} if fields is not None else set()


def _state(process: Process) -> str | None:
    """The letter of its state; None where it is gone, a zombie, or another process by now."""
    fields = _stat(process.pid)
    if fields is None or fields[0] in "ZX" or int(fields[19]) != process.began:
        return None
    return fields[0]


def _stat(pid: int) -> list[str] | None:
    """The fields of /proc/PID/stat from the third on (proc_pid_stat(5)); None where the process is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None


def send(pid: int, number: signal.Signals) -> None:
    """Send a signal to a process that may be gone."""
    with suppress(ProcessLookupError):
        os.kill(pid, number)
