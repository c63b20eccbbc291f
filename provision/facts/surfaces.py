"""What lies on each disk itself: all signatures, its partitions' too, and whether its ends are blank."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from .answers import flag_of, quote, rows, text_of
from .known import Unknown
from .record import record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..recording.model import Answer


@record
class Signature:
    """One thing that libblkid recognises. `part` is what a partition's name adds to the disk's (`p1`).

    `kind` is wipefs's word (`ext4`, `gpt`, `PMBR`, `LVM2_member`, `linux_raid_member`, …).
    """

    part: str
    kind: str
    uuid: str
    label: str

    @property
    def mark(self) -> str:
        """What tells it from any other, without the kernel's name of the disk. UUIDs are bare digits."""
        return f"{self.part}|{self.kind}|{bare(self.uuid)}"


@record
class Surface:
    """One disk. `blank` is True where its first and last MiB are all zero."""

    name: str
    removable: bool
    read_only: bool
    blank: bool
    parts: tuple[str, ...]
    signatures: tuple[Signature, ...]

    @property
    def empty(self) -> bool:
        """Nothing is on it, as far as anything can tell."""
        return self.blank and not self.parts and not self.signatures

    @property
    def marks(self) -> tuple[str, ...]:
        """All that is on it, sorted; the module data_disks finds the same on the host before it writes."""
        found = {s.mark for s in self.signatures} | {f"{part}|part|" for part in self.parts}
        if not self.blank and not any(not s.part for s in self.signatures):
            found.add(NAMELESS)
        return tuple(sorted(found))


NAMELESS = "|bytes|"
"""The mark of a disk with bytes on it that no known format explains."""


def bare(uuid: str) -> str:
    """A UUID's letters and digits alone: tools part and write them differently."""
    return re.sub(r"[^0-9a-zA-Z]", "", uuid).lower()


def surfaces(answer: Answer) -> Mapping[str, Surface | Unknown] | Unknown:
    """Surfaces by the kernel's name of the disk; Unknown for one that could not be read whole."""
    entries = rows(answer)
    if isinstance(entries, Unknown):
        return entries
    found: dict[str, Surface | Unknown] = {}
    for entry in entries:
        name = text_of(entry, "name")
        if name is None:
            return Unknown(f"{answer.item}: a disk without a name: {quote(str(entry))}", answer.item)
        found[name] = _surface(name, entry, answer.item)
    return found


def _surface(name: str, entry: dict[str, Any], item: str) -> Surface | Unknown:
    removable, read_only, blank = (flag_of(entry, key) for key in ("removable", "read_only", "blank"))
    parts = entry.get("parts")
    if removable is None or read_only is None or blank is None or not isinstance(parts, list) or not parts:
        return Unknown(f"/dev/{name} could not be read", item)
    signatures: list[Signature] = []
    for part in parts:
        said = part.get("signatures") if isinstance(part, dict) else None
        if not isinstance(said, str) or part.get("rc") != 0:
            return Unknown(f"/dev/{name}: its signatures could not be read", item)
        suffix = str(part.get("name", "")).removeprefix(name)
        for line in said.splitlines():
            if line.startswith("#") or not line.strip():
                continue
            fields = [_plain(field) for field in line.split(",")]
            if len(fields) < 4 or not fields[0].startswith("0x"):
                return Unknown(f"wipefs: unexpected line: {quote(line)}", item)
            signatures.append(Signature(suffix, fields[3], fields[1], fields[2]))
    suffixes = (str(part.get("name", "")).removeprefix(name) for part in parts)
    unique = tuple(dict.fromkeys(signatures))
    return Surface(name, removable, read_only, blank, tuple(s for s in suffixes if s), unique)


def _plain(field: str) -> str:
    """A field without the escapes that stand for commas and blanks (`\\x20`)."""
    return re.sub(r"\\x([0-9a-fA-F]{2})", lambda m: chr(int(m[1], 16)), field.strip())
