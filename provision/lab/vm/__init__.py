"""Lab hosts that are virtual machines: own kernel and udev, root on LVM, NVMe disks that come and go.

`machine` is the kind of host. Here is what can be done to such a host and to no other: disks are
added, plugged, unplugged and put in another order, and the power is cut.
"""

from __future__ import annotations

from .disks import SYSTEM, Disk, add, disk, file, order, plug, remove, reorder, unplug
from .machine import cut_power

__all__ = [
    "SYSTEM",
    "Disk",
    "add",
    "cut_power",
    "disk",
    "file",
    "order",
    "plug",
    "remove",
    "reorder",
    "unplug",
]
