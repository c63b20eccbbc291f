"""Block devices with everything that is built on them."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .answers import document, flag_of, int_of, output, quote, text_of
from .known import Unknown
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
    children: tuple[BlockDevice, ...]
    removable: bool | None = None

    def walk(self) -> Iterator[BlockDevice]:
        """This device and all that is built on it."""
        yield self
        for child in self.children:
            yield from child.walk()


def signatures(answer: Answer) -> Mapping[str, Mapping[str, str]] | Unknown:
    """`blkid -o export`: blocks of KEY=VALUE by DEVNAME. It ends with 2 where no device carries anything."""
    text = output(answer, ok=(0, 2))
    if isinstance(text, Unknown):
        return text
    if answer.rc == 0 and not text.strip():
        return Unknown("blkid printed nothing, and did not say that there is nothing", answer.item)
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
        tuple(children),
        flag_of(entry, "rm"),
    )


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


def human(size: int) -> str:
    """A size in bytes as a person reads it."""
    amount = float(size)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}"
        amount /= 1024
    return f"{amount:.1f} TiB"
