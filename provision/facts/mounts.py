"""What is mounted, what /etc/fstab asks for, and how much room there is."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .answers import document, int_of, quote, rows, text_of
from .known import Absent, Unknown
from .record import record

if TYPE_CHECKING:
    from ..recording.model import Answer


@record
class Mount:
    """One mounted file system; sizes in bytes where findmnt was asked for them."""

    target: str
    source: str
    fstype: str
    options: tuple[str, ...]
    size: int | None
    used: int | None


@record
class FstabEntry:
    """One line of /etc/fstab."""

    line: int
    source: str
    target: str
    fstype: str
    options: tuple[str, ...]
    passno: int


@record
class Space:
    """Room on one mounted local file system, in bytes; `available` is what ordinary users may still write.

    `owner`, `group` (a number where the host's own files have no name for it) and `mode` (four octal digits)
    are those of its top folder.
    """

    target: str
    source: str
    fstype: str
    size: int
    available: int
    inodes: int | None
    inodes_free: int | None
    owner: str | None = None
    group: str | None = None
    mode: str | None = None


def mounts(answer: Answer) -> tuple[Mount, ...] | Unknown:
    """`findmnt -J`, tree or list."""
    value = document(answer)
    if isinstance(value, Unknown):
        return value
    entries = value.get("filesystems") if isinstance(value, dict) else None
    if not isinstance(entries, list) or not entries:
        return Unknown("findmnt: no list of file systems", answer.item)
    found: list[Mount] = []
    pending = list(reversed(entries))
    while pending:
        entry = pending.pop()
        target = text_of(entry, "target") if isinstance(entry, dict) else None
        if target is None:
            return Unknown(f"findmnt: an entry without a target: {quote(str(entry))}", answer.item)
        found.append(
            Mount(
                target,
                text_of(entry, "source") or "",
                text_of(entry, "fstype") or "",
                tuple((text_of(entry, "options") or "").split(",")),
                int_of(entry, "size"),
                int_of(entry, "used"),
            )
        )
        pending += reversed(entry.get("children") or ())
    return tuple(found)


def fstab(text: str | Absent | Unknown) -> tuple[FstabEntry, ...] | Absent | Unknown:
    """fstab(5): fields parted by blanks, with octal escapes for blanks inside them."""
    if not isinstance(text, str):
        return text
    found = []
    for number, raw in enumerate(text.splitlines(), 1):
        fields = [re.sub(r"\\([0-7]{3})", lambda m: chr(int(m[1], 8)), field) for field in raw.split()]
        if not fields or fields[0].startswith("#"):
            continue
        if len(fields) < 3:
            return Unknown(f"/etc/fstab, line {number}: too few fields: {quote(raw)}", "file:/etc/fstab")
        if not fields[1].startswith("/") and fields[1] not in ("none", "swap", "-"):
            return Unknown(f"/etc/fstab, line {number}: no mount point: {quote(raw)}", "file:/etc/fstab")
        options = fields[3] if len(fields) > 3 else "defaults"
        passno = int(fields[5]) if len(fields) > 5 and fields[5].isascii() and fields[5].isdigit() else 0
        found.append(FstabEntry(number, fields[0], fields[1], fields[2], tuple(options.split(",")), passno))
    return tuple(found)


def space(answer: Answer) -> tuple[Space, ...] | Unknown:
    found = rows(answer, "filesystems")
    if isinstance(found, Unknown):
        return found
    result = []
    for row in found:
        target, size, available = text_of(row, "target"), int_of(row, "size"), int_of(row, "available")
        if target is None or size is None or available is None:
            return Unknown(
                f"space: an entry without target, size or available: {quote(str(row))}", answer.item
            )
        source, fstype = text_of(row, "source") or "", text_of(row, "type") or ""
        inodes, free = int_of(row, "inodes"), int_of(row, "inodes_free")
        top = (text_of(row, key) for key in ("owner", "group", "mode"))
        result.append(Space(target, source, fstype, size, available, inodes, free, *top))
    return tuple(result)
