"""Role data_disks: file systems on the host's own disks, mounted so that they are there after every boot.

Only an empty disk is written, or one that the profile names for erasure with what is on it. A file system
that is the wanted one already is adopted as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

from ..facts.disks import human
from ..facts.known import Absent, Unknown
from ..facts.surfaces import bare
from . import data_disks_erase, data_disks_names, data_disks_paths
from .data_disks_choose import choose, disks
from .data_disks_existing import adoptable, lines_of, standing
from .data_disks_fstab import PATH as FSTAB
from .data_disks_fstab import render
from .data_disks_marker import begun, open_notes
from .data_disks_model import ARRAYS, DataMount, Member, Refused, entries
from .data_disks_now import unlike
from .wanted import File, Unit, Wanted, Why

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..catalog.stack import Stack
    from ..facts import Facts
    from ..profile.model import Profile
    from .data_disks_model import Disk, Entry

TRIM = "fstrim.timer"
_PROGRAMS = {"xfs": "xfsprogs", "ext4": "e2fsprogs"}
_LAYOUTS = {**dict.fromkeys(ARRAYS, "mdadm"), "lvm": "lvm2"}


@dataclass(frozen=True)
class DisksWanted(Wanted):
    """`mounts` are all data mounts; `fstab_was` is the digest of the fstab that the new one is made from."""

    mounts: tuple[DataMount, ...] = ()
    fstab_was: str = ""


def wanted(facts: Facts, profile: Profile, stack: Stack | Unknown) -> DisksWanted:
    """The mounts with their disks, the text of fstab and what is still to be done; or why nothing may be."""
    if not (asked := entries(profile)):
        return DisksWanted()
    kind = facts.virtualization
    if not isinstance(kind, Unknown) and kind.shares_kernel:
        return DisksWanted(
            refused="this host shares its machine's kernel: the disks are the machine's, not its own"
        )
    try:
        mounts = _mounts(facts, profile, asked)
    except Refused as e:
        return DisksWanted(refused=str(e))
    now = facts.file(FSTAB)
    assert not isinstance(now, Unknown), "a file that cannot be read was refused"
    text = "" if isinstance(now, Absent) else now
    return DisksWanted(
        files=(File(FSTAB, render(text, mounts)),),
        units=(Unit(TRIM, enabled=True, active=True),),
        packages=_packages(facts, mounts),
        steps=tuple(
            step
            for mount in mounts
            for step in (*_making(mount), *_left(mount, facts), *unlike(mount, facts))
        ),
        why=tuple(Why(mount.path, says) for mount in mounts for says in mount.why),
        mounts=mounts,
        fstab_was=sha256(text.encode()).hexdigest(),
    )


def _mounts(facts: Facts, profile: Profile, asked: Sequence[Entry]) -> tuple[DataMount, ...]:
    lines, there = lines_of(facts), facts.mounts
    if isinstance(there, Unknown):
        raise Refused(f"what is mounted is not known: {there.reason}")
    data_disks_paths.check(asked, facts, lines, there)
    every = disks(facts)
    allowed = data_disks_erase.allowed(profile, every)
    found: dict[str, DataMount] = {}
    taken: set[str] = set()
    # What is there has its disks before anything new is made; then those named one by one, then by number.
    for entry in asked:
        if (serving := standing(entry, every, lines, there)) is not None:
            found[entry.path] = _adopt(entry, serving.device.uuid or "", serving.disks)
        elif (half := begun(entry, facts, every)) is not None:
            found[entry.path] = _make(entry, half, resume=True)
        elif (serving := adoptable(entry, every)) is not None:
            found[entry.path] = _adopt(entry, serving.device.uuid or "", serving.disks)
        else:
            continue
        taken |= {member.id for member in found[entry.path].members}
    for entry in sorted(asked, key=_freedom):
        if entry.path not in found:
            found[entry.path] = _make(entry, choose(entry, every, taken, allowed), resume=False)
            taken |= {member.id for member in found[entry.path].members}
    names = [mount.name for mount in found.values() if mount.name]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise Refused(
            f"two mounts would both be called {twice}: take mount points that differ in their last letters"
        )
    return tuple(found[entry.path] for entry in asked)


def _freedom(entry: Entry) -> int:
    """How little a mount cares which disks it gets."""
    if isinstance(entry.disks, tuple):
        return 0
    return 3 if entry.disks == "auto" else 2 if isinstance(entry.disks, int) else 1


def _adopt(entry: Entry, uuid: str, below: Sequence[Disk]) -> DataMount:
    array = _array(below) if entry.layout in ARRAYS else ""
    return DataMount(
        entry.path, entry.filesystem, entry.layout, uuid, entry.options, _members(entry, below),
        name=data_disks_names.word(entry.path) if array else "", array=array,
        owner=entry.owner, group=entry.group, mode=entry.mode,
        why=(f"the {entry.filesystem} that is there is the wanted one",),
    )  # fmt: skip


def _array(below: Sequence[Disk]) -> str:
    """The UUID of the array that the disks are members of; empty where it is not told."""
    members = (
        device for disk in below for device in disk.device.walk() if device.fstype == "linux_raid_member"
    )
    found = {bare(device.uuid) for device in members if device.uuid}
    digits = found.pop() if len(found) == 1 else ""
    return ":".join(digits[at : at + 8] for at in range(0, len(digits), 8))


def _make(entry: Entry, below: Sequence[Disk], *, resume: bool) -> DataMount:
    ids = [disk.id for disk in below]
    array = data_disks_names.array_uuid(entry.path, ids) if entry.layout in ARRAYS else ""
    name = data_disks_names.group(entry.path) if entry.layout == "lvm" else ""
    return DataMount(
        entry.path, entry.filesystem, entry.layout, data_disks_names.filesystem_uuid(entry.path, ids),
        entry.options, _members(entry, below), make=True, resume=resume,
        label=data_disks_names.word(entry.path),
        name=data_disks_names.word(entry.path) if array else name, array=array,
        owner=entry.owner, group=entry.group, mode=entry.mode,
    )  # fmt: skip


def _members(entry: Entry, below: Sequence[Disk]) -> tuple[Member, ...]:
    return tuple(
        Member(
            disk.id, disk.device.serial, disk.device.size, disk.holds, disk.surface.marks,
            data_disks_names.volume_uuid(entry.path, disk.id) if entry.layout == "lvm" else "",
        )
        for disk in below
    )  # fmt: skip


def _making(mount: DataMount) -> tuple[str, ...]:
    if not mount.make:
        return ()
    listed = ", ".join(f"{m.id} ({human(m.size)}, {_state(m, mount)})" for m in mount.members)
    again = "finish what an earlier run began: " if mount.resume else ""
    return (f"{again}make {mount.filesystem} ({mount.layout}) for {mount.path} on {listed}",)


def _left(mount: DataMount, facts: Facts) -> tuple[str, ...]:
    if mount.make or mount.uuid not in open_notes(facts):
        return ()
    return (f"finish what an earlier run began for {mount.path}",)


def _state(member: Member, mount: DataMount) -> str:
    if mount.resume:
        return "begun"
    return "ERASING " + "; ".join(member.holds) if member.holds else "empty"


def _packages(facts: Facts, mounts: Sequence[DataMount]) -> tuple[str, ...]:
    """What makes and checks the file systems, as far as it is missing."""
    needed = {_PROGRAMS[m.filesystem] for m in mounts} | {
        _LAYOUTS[m.layout] for m in mounts if m.layout in _LAYOUTS
    }
    packages = facts.packages
    if isinstance(packages, Unknown):
        return ()
    return tuple(sorted(name for name in needed if packages.get(name) is None))
