"""The label and metadata of a physical volume with one linear logical volume, as LVM2 writes them.

Written here and not by LVM's tools, which need a device mapper in this machine's kernel and would have this
machine see the lab's volume group as its own. Format: lvm2's lib/format_text/layout.h and lib/label/label.c.
"""

from __future__ import annotations

import random
import string
import struct
import zlib

from . import layout

SECTOR = 512
METADATA_START = 4096
METADATA_SIZE = layout.DATA_OFFSET - METADATA_START
MAGIC = b"\x20\x4c\x56\x4d\x32\x20\x78\x5b\x35\x41\x25\x72\x30\x4e\x2a\x3e"
SEED = 0xF597A6CF  # lvm2's INITIAL_CRC
GROUPING = (6, 4, 4, 4, 4, 4, 6)


def physical_volume(name: str, created: int) -> bytes:
    """The first `layout.DATA_OFFSET` bytes of the physical volume. `name` seeds its identities; `created` is
    seconds since 1970.
    """
    chance = random.Random(name)  # identities, no secrets
    volume, group, logical = (_identity(chance) for _ in range(3))
    text = _metadata(volume, group, logical, created).encode() + b"\0"
    area = bytearray(layout.DATA_OFFSET)
    area[SECTOR : 2 * SECTOR] = _label(volume)
    area[METADATA_START : METADATA_START + SECTOR] = _header(text)
    start = METADATA_START + SECTOR
    area[start : start + len(text)] = text
    return bytes(area)


def _label(volume: str) -> bytes:
    """The sector by which LVM knows a physical volume: identity, size, where data and metadata are."""
    body = volume.encode() + struct.pack("<Q", layout.PV_SIZE)
    body += struct.pack("<QQ", layout.DATA_OFFSET, 0) + bytes(16)
    body += struct.pack("<QQ", METADATA_START, METADATA_SIZE) + bytes(16)
    body += struct.pack("<II", 2, 1) + bytes(16)  # extension: version 2, used by a group; no boot loader area
    rest = (struct.pack("<I8s", 32, b"LVM2 001") + body).ljust(SECTOR - 20, b"\0")
    return b"LABELONE" + struct.pack("<QI", 1, _sum(rest)) + rest


def _header(text: bytes) -> bytes:
    """The first sector of the metadata area: where the one copy of the text is, and its checksum."""
    location = struct.pack("<QQII", SECTOR, len(text), _sum(text), 0)
    rest = MAGIC + struct.pack("<IQQ", 1, METADATA_START, METADATA_SIZE) + location
    rest = rest.ljust(SECTOR - 4, b"\0")
    return struct.pack("<I", _sum(rest)) + rest


def _metadata(volume: str, group: str, logical: str, created: int) -> str:
    extents = (layout.PV_SIZE - layout.DATA_OFFSET) // layout.EXTENT_SIZE
    used = layout.ROOT_SIZE // layout.EXTENT_SIZE
    return f"""{layout.GROUP} {{
id = "{_dashed(group)}"
seqno = 1
format = "lvm2"
status = ["RESIZEABLE", "READ", "WRITE"]
flags = []
extent_size = {layout.EXTENT_SIZE // SECTOR}
max_lv = 0
max_pv = 0
metadata_copies = 0
physical_volumes {{
pv0 {{
id = "{_dashed(volume)}"
device = "/dev/nvme0n1p2"
status = ["ALLOCATABLE"]
flags = []
dev_size = {layout.PV_SIZE // SECTOR}
pe_start = {layout.DATA_OFFSET // SECTOR}
pe_count = {extents}
}}
}}
logical_volumes {{
{layout.VOLUME} {{
id = "{_dashed(logical)}"
status = ["READ", "WRITE", "VISIBLE"]
flags = []
creation_time = {created}
creation_host = "lab"
segment_count = 1
segment1 {{
start_extent = 0
extent_count = {used}
type = "striped"
stripe_count = 1
stripes = [
"pv0", 0
]
}}
}}
}}
}}
contents = "Text Format Volume Group"
version = 1
description = "gpu-provision lab"
creation_host = "lab"
creation_time = {created}
"""


def _identity(chance: random.Random) -> str:
    return "".join(chance.choices(string.ascii_letters + string.digits, k=32))


def _dashed(identity: str) -> str:
    parts, start = [], 0
    for length in GROUPING:
        parts.append(identity[start : start + length])
        start += length
    return "-".join(parts)


def _sum(data: bytes) -> int:
    """LVM's checksum: CRC-32 from a start value of its own, not inverted at either end."""
    return zlib.crc32(data, SEED ^ 0xFFFFFFFF) ^ 0xFFFFFFFF
