"""RAID arrays of the kernel, and SMART of NVMe disks."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .answers import document, flag_of, int_of, output, parse_json, plain, quote, text_of
from .known import Maybe, Unknown
from .record import record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..recording.model import Answer


@record
class MdArray:
    """One array of /proc/mdstat. `action` is a resync, recovery, reshape or check with its progress."""

    name: str
    active: bool
    level: str
    members: tuple[str, ...]
    failed: tuple[str, ...]
    spares: tuple[str, ...]
    wanted: int | None
    working: int | None
    action: str

    @property
    def degraded(self) -> bool:
        short = self.wanted is not None and self.working is not None and self.working < self.wanted
        return short or bool(self.failed)


@record
class NvmeHealth:
    """SMART of one NVMe disk (NVM Express Base Specification, SMART / Health Information log page).

    `critical_warning` is its bit field, `percent_used` may pass 100, `spare` falls to `spare_threshold`.
    """

    device: str
    passed: Maybe[bool]
    critical_warning: Maybe[int]
    percent_used: Maybe[int]
    spare: Maybe[int]
    spare_threshold: Maybe[int]
    media_errors: Maybe[int]
    temperature: Maybe[int]


# `broken` is a raid0 or linear array that lost a member (Linux 5.15 and newer).
_ARRAY = re.compile(r"(md[\w-]+) : (active|inactive|broken)((?: \([a-z-]+\))*)((?: \S+)*)")


def raids(answer: Answer) -> tuple[MdArray, ...] | Unknown:
    """/proc/mdstat; it is not there where the kernel has no md driver loaded, and then there is no array."""
    if answer.missing:
        return ()
    text = output(answer)
    if isinstance(text, Unknown):
        return text
    if "Personalities" not in text or "unused devices" not in text:
        return Unknown(f"/proc/mdstat is not whole: {quote(text) or 'it is empty'}", answer.item)
    found: list[MdArray] = []
    for line in text.splitlines():
        if line.startswith("md"):
            array = _ARRAY.fullmatch(line.rstrip())
            if not array:
                return Unknown(f"/proc/mdstat: unexpected line: {quote(line)}", answer.item)
            found.append(_array(array[1], array[2] == "active", array[4].split()))
        elif found and (counts := re.search(r"\[(\d{1,4})/(\d{1,4})\]", line)):
            found[-1] = replace(found[-1], wanted=int(counts[1]), working=int(counts[2]))
        elif found and (acts := re.search(r"(resync|recovery|reshape|check)\s*=\s*(\S+)", line)):
            found[-1] = replace(found[-1], action=f"{acts[1]} {acts[2]}")
    return tuple(found)


def _array(name: str, active: bool, words: list[str]) -> MdArray:
    level = words.pop(0) if words and "[" not in words[0] else ""
    members = {re.sub(r"\[.*", "", word): word for word in words}
    return MdArray(
        name,
        active,
        level,
        tuple(members),
        tuple(member for member, word in members.items() if "(F)" in word),
        tuple(member for member, word in members.items() if "(S)" in word),
        None,
        None,
        "",
    )


def nvme_health(answer: Answer) -> tuple[NvmeHealth, ...] | Unknown:
    """`smartctl -j -a` of each NVMe disk: one answer a disk, which names its device."""
    value = document(answer, "disks")
    if isinstance(value, Unknown):
        return value
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
        return Unknown("nvme.smart: a list of answers was expected", answer.item)
    found = []
    for entry in value:
        device, text = text_of(entry, "device"), entry.get("stdout")
        if isinstance(about := entry.get("device"), dict):  # smartctl's document itself
            found.append(_health(text_of(about, "name") or "", entry))
            continue
        if device is None:
            return Unknown(f"nvme.smart: an answer without its device: {quote(str(entry))}", answer.item)
        # smartctl's status is a bit field that speaks of the disk's health, so it is no sign of an error.
        report = parse_json(plain(text), answer.item) if isinstance(text, str) else None
        found.append(_health(device, report if isinstance(report, dict) else {}))
    return tuple(found)


def _health(name: str, entry: Mapping[str, Any]) -> NvmeHealth:
    item = "nvme.smart"
    status, log = entry.get("smart_status"), entry.get("nvme_smart_health_information_log")
    status, log = status if isinstance(status, dict) else {}, log if isinstance(log, dict) else {}
    told = _messages(entry)

    def count(key: str) -> Maybe[int]:
        number = int_of(log, key)
        return number if number is not None else Unknown(f"smartctl tells no {key} of {name}{told}", item)

    passed = flag_of(status, "passed")
    return NvmeHealth(
        name,
        passed if passed is not None else Unknown(f"smartctl gives no verdict on {name}{told}", item),
        count("critical_warning"),
        count("percentage_used"),
        count("available_spare"),
        count("available_spare_threshold"),
        count("media_errors"),
        count("temperature"),
    )


def _messages(entry: Mapping[str, Any]) -> str:
    """smartctl's own words on what went wrong, where it has some."""
    about = entry.get("smartctl")
    messages = about.get("messages") if isinstance(about, dict) else None
    texts = [m.get("string") for m in messages if isinstance(m, dict)] if isinstance(messages, list) else []
    return ": " + quote(" / ".join(t for t in texts if isinstance(t, str))) if texts else ""
