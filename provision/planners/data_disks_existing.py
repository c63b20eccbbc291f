"""What serves a mount already: adopted as it is, or nothing is done where it is not what was asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..facts.known import Unknown
from . import data_disks_names as names
from .data_disks_model import Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..facts import Facts
    from ..facts.disks import BlockDevice
    from ..facts.mounts import FstabEntry, Mount
    from .data_disks_model import Disk, Entry

# What lsblk calls the device that a file system of a layout lies on.
_KINDS = {
    "single": ("disk", "part", "crypt", "mpath"),
    "raid0": ("raid0",),
    "raid1": ("raid1",),
    "raid10": ("raid10",),
    "lvm": ("lvm",),
}


@dataclass(frozen=True)
class Found:
    """A file system that is there, and the disks below it."""

    device: BlockDevice
    disks: tuple[Disk, ...]


def standing(
    entry: Entry, every: Sequence[Disk], lines: Sequence[FstabEntry], mounts: Sequence[Mount]
) -> Found | None:
    """The file system that is mounted there, or that fstab mounts. Raises Refused where it is another."""
    here = [m for m in mounts if m.target.rstrip("/") == entry.path]
    line = next((e for e in lines if e.target.rstrip("/") == entry.path), None)
    if not here:
        return None if line is None else _checked(entry, _of_line(entry, line, every))
    found = _at(every, here[-1].source)
    if found is None:
        raise Refused(f"{entry.path} is a mount of {here[-1].source} ({here[-1].fstype}) already")
    return _checked(entry, found)


def adoptable(entry: Entry, every: Sequence[Disk]) -> Found | None:
    """The wanted file system that is on its disks and mounted nowhere. Raises Refused where it is another."""
    found = _ours(entry, every) or _named(entry, every)
    return None if found is None else _checked(entry, found)


def _by(every: Sequence[Disk], fits: Callable[[BlockDevice], bool]) -> Found | None:
    device = next((d for disk in every for d in disk.device.walk() if fits(d)), None)
    if device is None:
        return None
    below = tuple(disk for disk in every if any(d.path == device.path for d in disk.device.walk()))
    return Found(device, below)


def _at(every: Sequence[Disk], path: str) -> Found | None:
    return _by(every, lambda device: device.path == path)


def _of_line(entry: Entry, line: FstabEntry, every: Sequence[Disk]) -> Found:
    key, sign, value = line.source.partition("=")
    value = value.strip('"')
    where = f"{entry.path}: line {line.line} of /etc/fstab mounts {line.source} there"
    if sign and key == "UUID":
        found = _by(every, lambda d: d.uuid == value)
    elif sign and key == "LABEL":
        found = _by(every, lambda d: d.label == value)
    elif line.source.startswith(names.BY_ID):
        found = _by(every, lambda d: line.source in d.by_id)
    elif line.source.startswith("/dev/mapper/"):
        found = _at(every, line.source)
    else:
        raise Refused(
            f"{where}, which is not mounted, and the name may be another disk's by now: write UUID= (`blkid`)"
        )
    if found is None:
        raise Refused(
            f"{where}, and no disk carries that: its disk is missing. Bring it back; or, if "
            "it is lost, take the line out of /etc/fstab"
        )
    return found


def _ours(entry: Entry, every: Sequence[Disk]) -> Found | None:
    """Made by this role for this mount point, on just these disks."""
    for disk in every:
        for device in disk.device.walk():
            found = _at(every, device.path)
            if found is None or not device.uuid:
                continue
            if device.uuid == names.filesystem_uuid(entry.path, (d.id for d in found.disks)):
                return found
    return None


def _named(entry: Entry, every: Sequence[Disk]) -> Found | None:
    """On disks that the profile names one by one, the file system that it asks for is the wanted one."""
    if not isinstance(entry.disks, tuple):
        return None
    asked = set(entry.disks)
    for disk in every:
        for device in disk.device.walk():
            found = _at(every, device.path)
            if found is None or device.fstype != entry.filesystem or not device.uuid:
                continue
            if _called(found, asked) and device.kind in _KINDS[entry.layout] and device.kind != "part":
                return found
    return None


def _called(found: Found, asked: set[str]) -> bool:
    return len(found.disks) == len(asked) and all(
        asked & {disk.id, *(name.removeprefix(names.BY_ID) for name in disk.device.by_id)}
        for disk in found.disks
    )


def _checked(entry: Entry, found: Found) -> Found:
    """Raises Refused where the file system is not what is asked for: it is never made another."""
    device = found.device
    told = f"{entry.path} is there already, on {device.path}"
    leave = (
        "Nothing of it is changed. Name it as it is; or unmount it, take its line out of fstab, and name "
        "its disks in data_disks_erase"
    )
    if device.fstype != entry.filesystem:
        raise Refused(f"{told}: it is {device.fstype or 'unknown'}, not {entry.filesystem}. {leave}")
    if device.kind not in _KINDS[entry.layout]:
        raise Refused(f"{told}: it is of layout {device.kind}, not {entry.layout}. {leave}")
    if not device.uuid:
        raise Refused(f"{told}: its UUID is not known, and fstab would name the disk by chance")
    if isinstance(entry.disks, tuple) and not _called(found, set(entry.disks)):
        listed = ", ".join(disk.id for disk in found.disks)
        raise Refused(f"{told}: it is made of {listed}, not of what `disks` names. {leave}")
    if isinstance(entry.disks, int) and entry.disks != len(found.disks):
        raise Refused(f"{told}: it is made of {len(found.disks)} disks, not of {entry.disks}. {leave}")
    elsewhere = [p for p in device.mountpoints if p.rstrip("/") != entry.path]
    if elsewhere and entry.path not in [p.rstrip("/") for p in device.mountpoints]:
        raise Refused(f"{entry.path}: {device.path} is mounted at {elsewhere[0]} already")
    return found


def lines_of(facts: Facts) -> tuple[FstabEntry, ...]:
    """The entries of /etc/fstab. Raises Refused where it cannot be read."""
    found = facts.fstab
    if isinstance(found, Unknown):
        raise Refused(f"/etc/fstab is left alone: {found.reason}")
    return found if isinstance(found, tuple) else ()
