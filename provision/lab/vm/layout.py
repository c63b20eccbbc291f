"""What is where on a virtual machine's system disk, in bytes: an MBR, a boot partition, and one of LVM.

It is what Debian's installer lays for `guided, LVM` on a machine that boots by BIOS, with room left in the
volume group for snapshots.
"""

from __future__ import annotations

import struct

SECTOR = 512
MIB = 2**20
DISK_SIZE = 16 * 2**30
BOOT_START = 1 * MIB
BOOT_SIZE = 512 * MIB
PV_START = BOOT_START + BOOT_SIZE
PV_SIZE = DISK_SIZE - PV_START
DATA_OFFSET = 1 * MIB  # of the first extent, from the start of the physical volume: LVM's own default
EXTENT_SIZE = 4 * MIB
ROOT_START = PV_START + DATA_OFFSET
ROOT_SIZE = 10 * 2**30

GROUP = "system"
VOLUME = "root"
ROOT_DEVICE = f"/dev/mapper/{GROUP}-{VOLUME}"


def master_boot_record(loader: bytes, signature: int) -> bytes:
    """The first sector: the boot loader's first 440 bytes, the disk's signature, and the partition table."""
    entries = _entry(0x80, 0x83, BOOT_START, BOOT_SIZE) + _entry(0, 0x8E, PV_START, PV_SIZE)
    return (
        loader[:440].ljust(440, b"\0")
        + struct.pack("<IH", signature, 0)
        + entries.ljust(64, b"\0")
        + b"\x55\xaa"
    )


def _entry(status: int, kind: int, start: int, size: int) -> bytes:
    """One partition. Cylinders, heads and sectors say that only the sector numbers count."""
    beyond = b"\xfe\xff\xff"
    return struct.pack("<B3sB3sII", status, beyond, kind, beyond, start // SECTOR, size // SECTOR)
