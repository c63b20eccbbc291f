"""The shapes of `data_disks_mounts` and `data_disks_erase`: what is wrong with a value, or None."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_PARTS = ("path", "disks", "filesystem", "layout", "options", "owner", "group", "mode")
_LAYOUTS = ("single", "raid0", "raid1", "raid10", "lvm")
_SIZE = r"\d+(\.\d+)?[KMGTkmgt]?"
# Blanks and commas would break a line of fstab.
_OPTION = r"[A-Za-z0-9_.:=/@%+-]+"


def mounts(value: Any) -> str | None:
    """A list of {path, disks, filesystem, layout, options, owner, group, mode}."""
    if not isinstance(value, list):
        return "must be a list"
    for entry in value:
        if not isinstance(entry, Mapping) or "path" not in entry:
            return f"{entry!r} has no path; an entry is {{{', '.join(_PARTS)}}}"
        if extra := sorted(set(map(str, entry)) - set(_PARTS)):
            return f"{extra[0]} is no part of an entry: it has {', '.join(_PARTS)}"
        if problem := _entry(entry):
            return f"{entry['path']}: {problem}"
    return None


def _entry(entry: Mapping[str, Any]) -> str | None:
    path, system = str(entry["path"]), entry.get("filesystem")
    if not re.fullmatch(r"(/[A-Za-z0-9_.@+-]+)+/?", path) or {".", ".."} & set(path.split("/")):
        return "path is absolute, of letters, digits and _.@+-, without `.` and `..`"
    if system not in (None, "xfs", "ext4"):
        return f"filesystem is xfs or ext4, not {system}"
    if entry.get("layout") not in (None, *_LAYOUTS):
        return f"layout is one of {', '.join(_LAYOUTS)}, not {entry['layout']}"
    options = entry.get("options") or []
    if not isinstance(options, list) or not all(re.fullmatch(_OPTION, str(o)) for o in options):
        return "options is a list of mount options without blanks and commas"
    if "prjquota" in options and system == "ext4":
        return "project quotas are for xfs"
    for key in ("owner", "group"):
        if entry.get(key) is not None and not re.fullmatch(r"[A-Za-z0-9_.-]+", str(entry[key])):
            return f"{key} is the name of a {'user' if key == 'owner' else 'group'}"
    mode = entry.get("mode")
    if mode is not None and (not isinstance(mode, str) or not re.fullmatch(r"[0-7]{3,4}", mode)):
        return f'mode is text of octal digits in quotes, such as "0775", not {mode!r}'
    return _disks(entry.get("disks", "auto"))


def _disks(value: Any) -> str | None:
    if value == "auto":
        return None
    if isinstance(value, int) and not isinstance(value, bool):
        return None if value > 0 else "disks is a number above 0"
    if isinstance(value, list) and value:
        wrong = [name for name in value if not _by_id(name)]
        if wrong:
            return f"{wrong[0]!r} is no name below /dev/disk/by-id, and others change at a boot"
        return "disks names one twice" if len(set(value)) < len(value) else None
    if isinstance(value, Mapping) and value:
        extra = sorted(set(map(str, value)) - {"model", "size", "count"})
        if extra:
            return f"disks has {extra[0]}; it may hold model, size and count"
        if "size" in value and not re.fullmatch(_SIZE, str(value["size"])):
            return f"{value['size']!r} is no size such as 3.84T"
        count = value.get("count", 1)
        fits = isinstance(count, int) and not isinstance(count, bool) and count > 0
        return None if fits else "count is a number above 0"
    return "disks is auto, a number, a list of names below /dev/disk/by-id, or {model, size, count}"


def _by_id(name: Any) -> bool:
    return isinstance(name, str) and re.fullmatch(r"(/dev/disk/by-id/)?[A-Za-z0-9_.:@=+-]+", name) is not None


def erase(value: Any) -> str | None:
    """A list of {disk: NAME, holds: TEXT}."""
    if not isinstance(value, list):
        return "must be a list"
    for entry in value:
        if not isinstance(entry, Mapping) or set(entry) != {"disk", "holds"}:
            return f"{entry!r}: an entry is {{disk, holds}}, with what the plan showed to be on the disk"
        if not _by_id(entry["disk"]):
            return f"{entry['disk']!r} is no name below /dev/disk/by-id"
        if not isinstance(entry["holds"], str) or not entry["holds"].strip():
            return f"{entry['disk']}: holds is the text that the plan showed"
    return None
