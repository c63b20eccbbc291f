"""Which disks a new mount is made of: empty ones, or those named for erasure with what is on them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..facts.disks import human
from ..facts.known import Unknown
from ..facts.surfaces import Surface
from . import data_disks_names as names
from .data_disks_model import Disk, Refused

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from ..facts import Facts
    from .data_disks_model import Entry

# How far a maker's size may be from the bytes: 3.84T is sold for 3,840,755,982,336.
_ROUNDING = 0.05
# More than this between members of an array, and a part of the larger ones would be lost.
_UNLIKE = 0.02
_LEAST = {"single": 1, "raid0": 2, "raid1": 2, "raid10": 4, "lvm": 1}
_UNITS = {"K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


def disks(facts: Facts) -> tuple[Disk, ...]:
    """The host's disks that have a lasting name, also those that cannot be read. Raises Refused for none."""
    found = facts.disks
    for told in (found, facts.surfaces):
        if isinstance(told, Unknown):
            raise Refused(f"the host's disks are not known: {told.reason}")
    assert not isinstance(found, Unknown)
    known = []
    for device in found:
        name, surface = names.stable(device), facts.surface(device)
        holds = facts.contents(device.path)
        if name is None:
            continue
        if isinstance(surface, Unknown) or isinstance(holds, Unknown):
            why = surface.reason if isinstance(surface, Unknown) else "what it holds was not told"
            blind = Surface(
                device.name, removable=False, read_only=False, blank=False, parts=(), signatures=()
            )
            known.append(Disk(name, device, blind, ("what could not be read",), why))
        else:
            known.append(Disk(name, device, surface, holds))
    return tuple(known)


def unfit(disk: Disk, every: Sequence[Disk]) -> str | None:
    """Why a disk may not be written at all, whatever is on it."""
    if disk.unread is not None:
        return f"cannot be read ({disk.unread})"
    if disk.surface.removable or disk.device.removable or disk.device.transport == "usb":
        return "can be taken out"
    if disk.surface.read_only or disk.device.read_only:
        return "is read-only"
    same = [d for d in every if d is not disk and d.device.serial and d.device.serial == disk.device.serial]
    # Namespaces of one NVMe controller share its serial number, and differ in their own names.
    if same and not disk.device.name.startswith("nvme"):
        return f"has the serial number of {same[0].device.path}, so both may be paths to one disk (multipath)"
    if disk.in_use:
        return "is in use"
    return None


def erasable(disk: Disk, allowed: Mapping[str, str], every: Sequence[Disk]) -> bool:
    """Whether the profile names the disk with just what is on it, and so all that shares a volume with it."""
    if _words(allowed.get(disk.id, "")) != _words("; ".join(disk.holds)):
        return False
    upper = {d.path for d in disk.device.walk()} - {disk.device.path}
    beside = [d for d in every if d is not disk and upper & {x.path for x in d.device.walk()}]
    return all(_words(allowed.get(d.id, "")) == _words("; ".join(d.holds)) for d in beside)


def choose(
    entry: Entry, every: Sequence[Disk], taken: Collection[str], allowed: Mapping[str, str]
) -> tuple[Disk, ...]:
    """The disks of a mount that is to be made, in a fixed order. Raises Refused where there are none."""
    if isinstance(entry.disks, tuple):
        found = tuple(_named(entry, name, every, taken, allowed) for name in entry.disks)
    else:
        found = _counted(entry, every, taken, allowed)
    least = _LEAST[entry.layout]
    if len(found) < least:
        raise Refused(f"{entry.path}: {entry.layout} takes {least} disks or more, and there is only one")
    if entry.layout == "single" and len(found) > 1:
        listed = ", ".join(disk.id for disk in found)
        raise Refused(
            f"{entry.path}: layout single takes one disk, and {len(found)} would do ({listed}): name one in "
            "`disks`, write `disks: 1`, or take raid0, raid1, raid10 or lvm"
        )
    sizes = [disk.device.size for disk in found]
    if entry.layout.startswith("raid") and max(sizes) > min(sizes) * (1 + _UNLIKE):
        listed = ", ".join(f"{d.id} ({human(d.device.size)})" for d in found)
        raise Refused(
            f"{entry.path}: {entry.layout} of disks of unlike size ({listed}): name those that match"
        )
    return found


def _named(
    entry: Entry, name: str, every: Sequence[Disk], taken: Collection[str], allowed: Mapping[str, str]
) -> Disk:
    disk = next((d for d in every if names.BY_ID + name in d.device.by_id or d.id == name), None)
    if disk is None:
        listed = ", ".join(d.id for d in every) or "none with a name that lasts"
        raise Refused(f"{entry.path}: there is no disk {name} here; there are: {listed}")
    about = f"{entry.path}: {disk.id} ({disk.device.path}, {human(disk.device.size)})"
    if disk.id in taken:
        raise Refused(f"{about} serves another mount")
    if why := unfit(disk, every):
        raise Refused(f"{about} {why}: {'; '.join(disk.holds) or 'empty'}")
    if not disk.surface.empty and not erasable(disk, allowed, every):
        raise Refused(f"{about} is not empty. {_how(disk)}")
    return disk


def _counted(
    entry: Entry, every: Sequence[Disk], taken: Collection[str], allowed: Mapping[str, str]
) -> tuple[Disk, ...]:
    wish = entry.disks if not isinstance(entry.disks, str | int | tuple) else {}
    fit = [d for d in every if _fits(d, wish) and d.id not in taken and unfit(d, every) is None]
    free = [d for d in fit if (d.surface.empty and not d.holds) or erasable(d, allowed, every)]
    free.sort(key=lambda d: (d.device.model or "", d.device.size, d.id))
    count = entry.disks if isinstance(entry.disks, int) else wish.get("count")
    if not free or (count is not None and len(free) < count):
        full = (
            "; ".join(f"{d.id} holds {'; '.join(d.holds)}" for d in every if d.holds) or "there are no others"
        )
        raise Refused(
            f"{entry.path}: {count or 1} empty NVMe disk{'s' if (count or 1) > 1 else ''} wanted, "
            f"{len(free)} found. {full}. A disk named in data_disks_erase with what it holds counts as empty"
        )
    return tuple(free[:count] if count is not None else free)


def _fits(disk: Disk, wish: Mapping[str, object]) -> bool:
    """Of the wished model and size; NVMe where no model is named."""
    model, size = str(wish.get("model") or ""), wish.get("size")
    if model and model.lower() not in (disk.device.model or "").lower():
        return False
    if not model and not (disk.device.name.startswith("nvme") or disk.device.transport == "nvme"):
        return False
    return size is None or abs(disk.device.size - bytes_of(str(size))) <= _ROUNDING * bytes_of(str(size))


def bytes_of(size: str) -> float:
    """`3.84T` as its maker counts: decimal."""
    return float(size.rstrip("KMGTkmgt")) * _UNITS.get(size[-1].upper(), 1)


def _how(disk: Disk) -> str:
    told = "; ".join(disk.holds)
    entry = f'[{{disk: {disk.id}, holds: "{told}"}}]'
    return f"To have it erased, name it with what it holds: data_disks_erase: {entry}"


def _words(text: str) -> str:
    return " ".join(text.split())
