"""What lies on each disk itself: every signature of it, and whether its ends are blank.

blkid leaves a disk out on which two signatures contradict each other, so a disk that it does not name need
not be empty.
"""

import os

from .asking import ask_all, program
from .reading import as_json, names, number, peek

MYPY = False
if MYPY:
    from typing import Any, Dict, List, Optional

SYS, DEV = "/sys/block", "/dev"
# Where file systems, tables and managers of volumes have their first and last words.
END = 1 << 20
_NO_DISKS = ("loop", "ram", "zram", "sr", "fd", "md", "dm-", "nbd", "drbd", "bcache", "zd")


def disks() -> "List[str]":
    """Kernel names of disks that have a size and a device node."""
    return [
        name
        for name in names(SYS)
        if not name.startswith(_NO_DISKS)
        and (number(peek(os.path.join(SYS, name, "size"))) or 0) > 0
        and os.path.exists(os.path.join(DEV, name))
    ]


def parts(disk: str) -> "List[str]":
    folder = os.path.join(SYS, disk)
    return [name for name in names(folder) if os.path.exists(os.path.join(folder, name, "partition"))]


def blank(path: str) -> "Optional[bool]":
    """Whether the first and the last MiB are all zero; None where they cannot be read."""
    try:
        with open(path, "rb") as device:
            size = device.seek(0, os.SEEK_END)
            for start in (0, max(0, size - END)):
                device.seek(start)
                if device.read(END).strip(b"\0"):
                    return False
    except OSError:
        return None
    return True


def surfaces() -> "Dict[str, Any]":
    """Each disk with its signatures and those of its partitions, as `wipefs` lists them."""
    found = disks()
    if not found:
        return as_json([])
    if os.geteuid() != 0:
        return {"denied": True}
    if program("wipefs") is None:
        return {"missing": True}
    asked = [(disk, name) for disk in found for name in [disk, *parts(disk)]]
    said = ask_all([["wipefs", "--parsable", os.path.join(DEV, name)] for _, name in asked], 6.0)
    rows: "List[Dict[str, Any]]" = []
    for (disk, name), answer in zip(asked, said):
        if disk == name:
            folder = os.path.join(SYS, disk)
            rows.append(
                {
                    "name": disk,
                    "removable": peek(os.path.join(folder, "removable")) == "1",
                    "read_only": peek(os.path.join(folder, "ro")) == "1",
                    "blank": blank(os.path.join(DEV, disk)),
                    "parts": [],
                }
            )
        rows[-1]["parts"].append(
            {"name": name, "rc": answer.get("rc"), "signatures": answer.get("stdout", "")}
        )
    return as_json(rows)
