"""A host's file system: its own layer over the shared base root."""

from __future__ import annotations

import re
import time
from pathlib import Path

from ..errors import Failure
from .shell import run


def lay(base: Path, layer: Path, work: Path, root: Path) -> None:
    """Mounts `layer` over `base` at `root`. `work` must be on the layer's file system."""
    options = f"lowerdir={base},upperdir={layer},workdir={work}"
    run(["mount", "-t", "overlay", "gpu-provision-lab", "-o", options, root])


def show(disk: Path, start: int, size: int, point: Path) -> None:
    """Mounts the file system that lies `start` bytes into a disk's file and is `size` bytes long."""
    run(["mount", "-o", f"loop,offset={start},sizelimit={size}", disk, point])


def below(folder: Path) -> list[Path]:
    """Mount points at or below a folder, in the order in which they can be unmounted."""
    points = []
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        point = Path(re.sub(r"\\(\d{3})", lambda match: chr(int(match[1], 8)), line.split()[4]))
        if point.is_relative_to(folder):
            points.append(point)
    return points[::-1]


def clear(folder: Path, *, patience: float = 5.0) -> None:
    """Unmounts everything at or below a folder.

    Raises Failure where something stays mounted for `patience` seconds, e.g. a shell stands in it.
    """
    deadline = time.monotonic() + patience
    while points := below(folder):
        last = ""
        for point in points:
            last = run(["umount", point], check=False).stderr.strip() or last
        if not below(folder):
            return
        if time.monotonic() > deadline:
            raise Failure(f"cannot unmount {points[0]}: {last}", do=f"look at `fuser -vm {points[0]}`")
        time.sleep(0.05)
