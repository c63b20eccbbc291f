"""LVM: logical volumes, and the room that volume groups have left."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .answers import document, quote, text_of
from .known import Unknown
from .record import record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..recording.model import Answer

# lvs(8), lv_attr, volume health. Mismatches of a RAID 1 (`m`) come with swap and harm nothing.
_TROUBLE = {
    "p": "a physical volume of it is missing",
    "r": "a member of it failed, it wants a refresh",
    "X": "its state is not known to LVM",
    "F": "its thin pool failed",
    "D": "its thin pool is out of room",
    "M": "its thin pool's metadata is full or broken, so it is read-only",
    "E": "its write cache has an error",
}


@record
class LogicalVolume:
    """One volume. `origin` is the volume that it is a snapshot of, `pool` the thin pool that it lies in,
    `attributes` are lvs(8)'s ten letters.
    """

    group: str
    name: str
    origin: str
    pool: str
    data_percent: float | None
    attributes: str = ""

    @property
    def trouble(self) -> str | None:
        """What the ninth letter says is wrong with it; None where nothing is, or it is not told."""
        return _TROUBLE.get(self.attributes[8:9])

    @property
    def mapper(self) -> str:
        """Its path below /dev/mapper, where a hyphen in a name is doubled."""
        group, name = (part.replace("-", "--") for part in (self.group, self.name))
        return f"/dev/mapper/{group}-{name}"


def _report(answer: Answer, kind: str) -> list[dict[str, Any]] | Unknown:
    value = document(answer)
    if isinstance(value, Unknown):
        return value
    reports = value.get("report") if isinstance(value, dict) else None
    if not isinstance(reports, list) or not all(isinstance(part, dict) for part in reports):
        return Unknown(f"{answer.item}: no report of LVM", answer.item)
    rows = [row for part in reports for row in part.get(kind) or ()]
    if not all(isinstance(row, dict) for row in rows):
        return Unknown(f"{answer.item}: an entry that is none", answer.item)
    return rows


def volumes(answer: Answer) -> tuple[LogicalVolume, ...] | Unknown:
    """`lvs --reportformat json`. LVM that is not installed has no volumes."""
    if answer.missing:
        return ()
    rows = _report(answer, "lv")
    if isinstance(rows, Unknown):
        return rows
    found = []
    for row in rows:
        group, name = text_of(row, "vg_name"), text_of(row, "lv_name")
        if group is None or name is None:
            return Unknown(f"lvs: an entry without its names: {quote(str(row))}", answer.item)
        full = _number(text_of(row, "data_percent"))
        # With `--all` LVM shows what it hides otherwise, in brackets.
        pool, origin = ((text_of(row, key) or "").strip("[]") for key in ("pool_lv", "origin"))
        attributes = text_of(row, "lv_attr") or ""
        found.append(LogicalVolume(group, name.strip("[]"), origin, pool, full, attributes))
    return tuple(found)


def groups(answer: Answer) -> Mapping[str, int] | Unknown:
    """Free bytes of each volume group, from `vgs --units b --reportformat json`."""
    if answer.missing:
        return {}
    rows = _report(answer, "vg")
    if isinstance(rows, Unknown):
        return rows
    found = {}
    for row in rows:
        name, free = text_of(row, "vg_name"), _number(text_of(row, "vg_free"))
        if name is None or free is None:
            return Unknown(f"vgs: an entry without name or room: {quote(str(row))}", answer.item)
        found[name] = int(free)
    return found


def _number(text: str | None) -> float | None:
    try:
        return float((text or "").rstrip("Bb"))
    except ValueError:
        return None
