"""What an earlier run wrote down before it began to write on disks: it goes on there, and nowhere else.

The note is on the host before the first byte is written, and is taken away once the file system is whole.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ..facts.known import Unknown
from ..facts.surfaces import NAMELESS, bare
from . import data_disks_names as names
from .data_disks_model import ARRAYS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..facts import Facts
    from .data_disks_model import Disk, Entry

PATTERN = "/var/lib/gpu-provision/disks/*.json"


def begun(entry: Entry, facts: Facts, every: Sequence[Disk]) -> tuple[Disk, ...] | None:
    """The disks on which an earlier run began this very mount; None where none did, or they hold more now."""
    note = _note(entry, facts)
    if note is None:
        return None
    found = []
    for told in note["members"]:
        disk = next((d for d in every if d.id == told.get("id")), None)
        if disk is None or disk.in_use:
            return None
        found.append(disk)
    ids = [disk.id for disk in found]
    for disk, told in zip(found, note["members"], strict=True):
        allowed = {NAMELESS, *map(str, told.get("marks") or ()), *_ours(entry, disk.id, ids)}
        if not set(disk.surface.marks) <= allowed:
            return None
    return tuple(found)


def open_notes(facts: Facts) -> frozenset[str]:
    """UUIDs of the file systems of mounts on which a run was cut off before all of it was done."""
    files = facts.files(PATTERN)
    paths = () if isinstance(files, Unknown) else files
    return frozenset(path.rpartition("/")[2].removesuffix(".json") for path in paths)


def _ours(entry: Entry, disk: str, ids: Sequence[str]) -> set[str]:
    """Marks of what the run itself may have left on a disk."""
    found = {f"|{entry.filesystem}|{bare(names.filesystem_uuid(entry.path, ids))}"}
    if entry.layout in ARRAYS:
        return {f"|linux_raid_member|{bare(names.array_uuid(entry.path, ids))}"}
    if entry.layout == "lvm":
        return {f"|LVM2_member|{bare(names.volume_uuid(entry.path, disk))}"}
    return found


def _note(entry: Entry, facts: Facts) -> dict[str, Any] | None:
    files = facts.files(PATTERN)
    for text in () if isinstance(files, Unknown) else files.values():
        try:
            note = json.loads(text) if isinstance(text, str) else None
        except ValueError:
            continue
        if not isinstance(note, dict) or not isinstance(note.get("members"), list):
            continue
        same = all(note.get(key) == getattr(entry, key) for key in ("path", "filesystem", "layout"))
        if same and all(isinstance(member, dict) for member in note["members"]):
            return note
    return None
