"""Each host's own cgroups: a booted systemd needs one to itself, and a host's processes are found there."""

from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path

from ..errors import Failure


def make(name: str) -> list[Path]:
    """Makes the host's cgroup in each hierarchy of systemd; returns the files that take a process id."""
    files = []
    for hierarchy in _hierarchies():
        (hierarchy / name).mkdir(exist_ok=True)
        files.append(hierarchy / name / "cgroup.procs")
    if not files:
        raise Failure("this machine has no cgroup hierarchy that a booted host could use")
    return files


def members(name: str) -> set[int]:
    """Process ids in the host's cgroups and below them."""
    found: set[int] = set()
    for hierarchy in _hierarchies():
        for folder, _, _ in os.walk(hierarchy / name):
            try:
                found.update(int(pid) for pid in (Path(folder) / "cgroup.procs").read_text().split())
            except OSError:
                continue  # went while we looked
    return found


def end(name: str, *, patience: float = 10.0) -> None:
    """Ends every process of the host and removes its cgroups.

    Raises Failure where some process is still there after `patience` seconds.
    """
    deadline = time.monotonic() + patience
    # Killing and removing go on together: a supervisor that was just started may join while we remove.
    while not _remove(name):
        left = members(name)
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        if time.monotonic() > deadline:
            what = (
                f"processes of a lab host do not end: {sorted(left)}"
                if left
                else f"cannot remove cgroup {name}"
            )
            raise Failure(what, do="`ps` says what they wait for" if left else "")
        time.sleep(0.01)


def named(prefix: str) -> set[str]:
    """Names of the cgroups that some lab host of this prefix has or had."""
    found = [path for hierarchy in _hierarchies() for path in hierarchy.glob(f"{prefix}*")]
    return {path.name for path in found if path.is_dir()}


def _remove(name: str) -> bool:
    gone = True
    for hierarchy in _hierarchies():
        for folder, _, _ in os.walk(hierarchy / name, topdown=False):
            try:
                Path(folder).rmdir()
            except FileNotFoundError:
                continue
            except OSError:
                gone = False
    return gone


def _hierarchies() -> list[Path]:
    """Mount points of cgroup2 and, beside it on hybrid machines, of systemd's own hierarchy."""
    found = []
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        left, _, right = line.partition(" - ")
        kind, _, options = right.split(" ", 2)
        point = Path(re.sub(r"\\(\d{3})", lambda match: chr(int(match[1], 8)), left.split()[4]))
        if kind == "cgroup2" or (kind == "cgroup" and "name=systemd" in options.split(",")):
            found.append(point)
    return [point for point in found if str(point).startswith("/sys/fs/cgroup")]
