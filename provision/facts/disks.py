"""Disks with everything that is on them, mounts, RAID arrays, fstab and the health of NVMe disks."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .answers import document, flag_of, int_of, output, parse_json, plain, quote, rows, text_of
from .known import Absent, Maybe, Unknown
from .record import record

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ..recording.model import Answer

_DEEPEST = 30


@record
class BlockDevice:
    """One block device with all that is built on it. `size` in bytes, `kind` is lsblk's type (disk, part, …).

    `fstype` is what blkid or lsblk recognised (`ext4`, `LVM2_member`, `linux_raid_member`,
    `crypto_LUKS`, …), `pttype` the partition table. None of either means empty only where
    `signatures_read` is True: without rights nothing of it is seen.
    """

    name: str
    path: str
    kind: str
    size: int
    fstype: str | None
    label: str | None
    uuid: str | None
    pttype: str | None
    mountpoints: tuple[str, ...]
    model: str | None
    serial: str | None
    transport: str | None
    rotational: bool | None
    read_only: bool | None
    by_id: tuple[str, ...]
    signatures_read: bool
    children: tuple[BlockDevice, ...]

    def walk(self) -> Iterator[BlockDevice]:
        """This device and all that is built on it."""
        yield self
        for child in self.children:
            yield from child.walk()

    @property
    def holds(self) -> tuple[str, ...] | Unknown:
        """All that is on this device, in words; an empty tuple only where it is known to be empty."""
        found = []
        for device in self.walk():
            if device.pttype:
                found.append(f"{device.path}: partition table {device.pttype}")
            if device is not self:
                found.append(f"{device.path}: {device.kind} of {_human(device.size)}")
            if device.fstype:
                named = " ".join(
                    f'{key}="{v}"' for key, v in (("label", device.label), ("uuid", device.uuid)) if v
                )
                found.append(f"{device.path}: {device.fstype} {named}".rstrip())
            found += [f"{device.path}: in use as {point}" for point in device.mountpoints]
        if not found and not self.signatures_read:
            return Unknown(f"what is on {self.path} could not be read", "blkid")
        return tuple(found)


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


def signatures(answer: Answer) -> Mapping[str, Mapping[str, str]] | Unknown:
    """`blkid -o export`: blocks of KEY=VALUE by DEVNAME. It ends with 2 where no device carries anything."""
    text = output(answer, ok=(0, 2))
    if isinstance(text, Unknown):
        return text
    found: dict[str, dict[str, str]] = {}
    for block in re.split(r"\n[ \t]*\n", text.strip()):
        values: dict[str, str] = {}
        for line in block.splitlines():
            key, sign, value = line.partition("=")
            if not sign or not re.fullmatch(r"[A-Z0-9_]+", key):
                return Unknown(f"blkid: unexpected line: {quote(line)}", answer.item)
            values[key] = re.sub(r"\\(.)", r"\1", value)
        if values and "DEVNAME" not in values:
            return Unknown(f"blkid: a block without DEVNAME: {quote(block)}", answer.item)
        if values:
            found[values["DEVNAME"]] = values
    return found


def block_devices(
    lsblk: Answer, signs: Mapping[str, Mapping[str, str]] | Unknown
) -> tuple[BlockDevice, ...] | Unknown:
    """The tree of `lsblk -J -b -O`, completed by blkid (lsblk knows file systems only where udev runs)."""
    value = document(lsblk)
    if isinstance(value, Unknown):
        return value
    entries = value.get("blockdevices") if isinstance(value, dict) else None
    if not isinstance(entries, list):
        return Unknown("lsblk: no list of block devices", lsblk.item)
    found = []
    for entry in entries:
        device = _device(entry, signs, 0)
        if isinstance(device, Unknown):
            return device
        found.append(device)
    return tuple(found)


def _device(
    entry: Any, signs: Mapping[str, Mapping[str, str]] | Unknown, depth: int
) -> BlockDevice | Unknown:
    item = "lsblk"
    if not isinstance(entry, dict) or depth > _DEEPEST:
        return Unknown("lsblk: an entry that is no device", item)
    name, kind, size = text_of(entry, "name"), text_of(entry, "type"), int_of(entry, "size")
    if name is None or kind is None or size is None:
        return Unknown(f"lsblk: a device without name, type or size: {quote(str(entry))}", item)
    children = []
    for child in entry.get("children") or ():
        device = _device(child, signs, depth + 1)
        if isinstance(device, Unknown):
            return device
        children.append(device)
    path = text_of(entry, "path") or f"/dev/{name}"
    sign = {} if isinstance(signs, Unknown) else signs.get(path, {})
    points = entry.get("mountpoints")
    points = points if isinstance(points, list) else [entry.get("mountpoint")]
    ids = [text_of(entry, "id-link")]
    seen = isinstance(signs, dict) or any(text_of(entry, key) for key in ("fstype", "pttype", "ptuuid"))
    return BlockDevice(
        name,
        path,
        kind,
        size,
        text_of(entry, "fstype") or sign.get("TYPE"),
        text_of(entry, "label") or sign.get("LABEL"),
        text_of(entry, "uuid") or sign.get("UUID"),
        text_of(entry, "pttype") or sign.get("PTTYPE"),
        tuple(point for point in points if isinstance(point, str) and point),
        text_of(entry, "model"),
        text_of(entry, "serial"),
        text_of(entry, "tran"),
        flag_of(entry, "rota"),
        flag_of(entry, "ro"),
        tuple(f"/dev/disk/by-id/{link}" for link in ids if link),
        seen,
        tuple(children),
    )


def with_ids(devices: tuple[BlockDevice, ...], ids: Mapping[str, tuple[str, ...]]) -> tuple[BlockDevice, ...]:
    """The tree with the stable names of each device, by kernel name."""
    return tuple(
        replace(
            device,
            by_id=tuple(dict.fromkeys((*device.by_id, *ids.get(device.name, ())))),
            children=with_ids(device.children, ids),
        )
        for device in devices
    )


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


@record
class Space:
    """Room on one mounted local file system, in bytes; `available` is what ordinary users may still write."""

    target: str
    source: str
    fstype: str
    size: int
    available: int
    inodes: int | None
    inodes_free: int | None


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
        result.append(Space(target, source, fstype, size, available, inodes, free))
    return tuple(result)


def ids(answer: Answer) -> Mapping[str, tuple[str, ...]] | Unknown:
    """Paths below /dev/disk/by-id by the kernel's name of what they point at."""
    value = document(answer)
    if isinstance(value, Unknown):
        return value
    if not isinstance(value, dict):
        return Unknown("disks by id: a JSON object was expected", answer.item)
    found: dict[str, list[str]] = {}
    for name, kernel in value.items():
        if isinstance(kernel, str):
            found.setdefault(kernel, []).append(f"/dev/disk/by-id/{name}")
    return {kernel: tuple(sorted(names)) for kernel, names in found.items()}


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
        options = fields[3] if len(fields) > 3 else "defaults"
        passno = int(fields[5]) if len(fields) > 5 and fields[5].isascii() and fields[5].isdigit() else 0
        found.append(FstabEntry(number, fields[0], fields[1], fields[2], tuple(options.split(",")), passno))
    return tuple(found)


_ARRAY = re.compile(r"(md[\w-]+) : (active|inactive)((?: \([a-z-]+\))*)((?: \S+)*)")


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


def _human(size: int) -> str:
    amount = float(size)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}"
        amount /= 1024
    return f"{amount:.1f} TiB"
