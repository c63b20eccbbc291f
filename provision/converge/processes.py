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
    from collections.abc import Iterable


# Killed processes take a moment to go, and those that they were starting show up late.
ROUNDS = 100


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
    """Kill a process and everything below it. It is stopped first, so that nothing new begins meanwhile."""
    send(pid, signal.SIGSTOP)
    for _ in range(ROUNDS):
        below = descendants(pid)
        if not below:
            break
        kill(below)
        time.sleep(0.02)
    send(pid, signal.SIGKILL)


def kill(processes: Iterable[Process]) -> None:
    """Kill those that are still there."""
    for process in processes:
        fields = _stat(process.pid)
        if fields is not None and int(fields[19]) == process.began:
            send(process.pid, signal.SIGKILL)


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
