"""All that is on a disk, in words that hold at the next boot too: without the kernel's names by order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .disks import human
from .known import Unknown

if TYPE_CHECKING:
    from .disks import BlockDevice
    from .surfaces import Surface

# A protective MBR belongs to each GPT.
_PART_OF = {"PMBR": "gpt"}
NAMELESS = "bytes of no known kind"


def contents(disk: BlockDevice, surface: Surface | Unknown) -> tuple[str, ...] | Unknown:
    """What is on a disk, outermost first; an empty tuple only where it is known to be empty."""
    found: dict[str, None] = {}
    told: set[tuple[str, str]] = set()
    for device in disk.walk():
        part = device.name.removeprefix(disk.name) if device.kind == "part" else device.name
        where = "" if device is disk else f"{part}: "
        if device is not disk:
            found[f"{where}{device.kind} of {human(device.size)}"] = None
        # Of a partition lsblk tells the table that it is in.
        if device.pttype and device.kind != "part":
            told.add((where, device.pttype))
            found[f"{where}partition table {device.pttype}"] = None
        if device.fstype:
            told.add((where, device.fstype))
            named = _named(device.fstype, device.label, device.uuid)
            found[where + named] = None
        for point in device.mountpoints:
            found[f"{where}in use as {point}"] = None
    if isinstance(surface, Unknown):
        return tuple(found) if found else surface
    for sign in surface.signatures:
        where = f"{sign.part}: " if sign.part else ""
        kind = _PART_OF.get(sign.kind, sign.kind)
        if (where, kind) not in told:
            told.add((where, kind))
            found[where + _named(kind, sign.label, sign.uuid)] = None
    for part in surface.parts:
        if not any(text.startswith(f"{part}: ") for text in found):
            found[f"{part}: part"] = None
    if not found and not surface.blank:
        found[NAMELESS] = None
    return tuple(found)


def _named(kind: str, label: str | None, uuid: str | None) -> str:
    more = "".join(f" {key}={value}" for key, value in (("label", label), ("uuid", uuid)) if value)
    return kind + more
