"""Names and UUIDs of what data_disks makes: they follow from the mount point and the disks alone.

So a plan can show the whole of /etc/fstab before there is a file system, and what a run left half-made is
known as ours.
"""

from __future__ import annotations

import re
import uuid
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..facts.disks import BlockDevice

BY_ID = "/dev/disk/by-id/"
_OURS = uuid.UUID("6f0c2f0e-6b0d-5c1e-9a55-6a1d8a3c7e42")
# The label's length that XFS allows (mkfs.xfs(8), -L); ext4 allows four more.
_LONGEST = 12
# In the order in which they are taken: with the serial number in words, then the disk's own number.
_KINDS = ("nvme-", "scsi-S", "ata-", "virtio-", "scsi-", "nvme-eui.", "nvme-uuid.", "wwn-")


def stable(disk: BlockDevice) -> str | None:
    """The one name below /dev/disk/by-id that a disk is called by; None where it has none that lasts."""
    names = [name.removeprefix(BY_ID) for name in disk.by_id]

    def rank(name: str) -> tuple[int, int, str]:
        worded = not name.startswith(("nvme-eui.", "nvme-uuid.", "nvme-nvme."))
        at = next((i for i, kind in enumerate(_KINDS) if name.startswith(kind)), len(_KINDS))
        return (0 if worded else 1, at, name)

    # udev's names of namespaces (…_1) come and go with its version, so the shortest of a kind is taken.
    return min(names, key=lambda name: (*rank(name)[:2], len(name), name), default=None)


def word(path: str) -> str:
    """A mount point as a label and as the name of an array or group: `/data/fast` is `data-fast`."""
    text = re.sub(r"[^A-Za-z0-9]+", "-", path).strip("-")
    return text[-_LONGEST:].strip("-") or "data"


def group(path: str) -> str:
    """The volume group of a mount of layout lvm."""
    return f"gp-{word(path)}"


def _made(*parts: str) -> str:
    return str(uuid.uuid5(_OURS, "\n".join(parts)))


def filesystem_uuid(path: str, ids: Iterable[str]) -> str:
    return _made("filesystem", path, *sorted(ids))


def array_uuid(path: str, ids: Iterable[str]) -> str:
    """As mdadm writes it: four words of eight digits."""
    digits = _made("array", path, *sorted(ids)).replace("-", "")
    return ":".join(digits[at : at + 8] for at in range(0, 32, 8))


def volume_uuid(path: str, disk: str) -> str:
    """Of one physical volume, as LVM parts it: 6-4-4-4-4-4-6."""
    digits = _made("volume", path, disk).replace("-", "")
    cuts = (0, 6, 10, 14, 18, 22, 26, 32)
    return "-".join(digits[a:b] for a, b in pairwise(cuts))
