"""Whether what is mounted at a place is what fstab names for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..facts.known import Unknown

if TYPE_CHECKING:
    from ..facts.mounts import FstabEntry, Mount
    from .model import Judged

# File systems of disks, by the driver that serves them. What a mount helper makes of other names (efs becomes
# nfs4, ntfs-3g fuseblk) is its own affair.
_DRIVERS = {"ext2": "ext", "ext3": "ext", "ext4": "ext", "xfs": "xfs", "btrfs": "btrfs", "f2fs": "f2fs"}


def another(host: Judged, entry: FstabEntry, mount: Mount) -> str | None:
    """What is mounted in the place of what fstab names; None where it is that, or cannot be told."""
    driver = _DRIVERS.get(entry.fstype)
    if driver is not None and _DRIVERS.get(mount.fstype, mount.fstype) not in (driver, "autofs", ""):
        return f"{entry.target} is {mount.fstype} of {mount.source}, not {entry.fstype}"
    devices = host.facts.block_devices
    if isinstance(devices, Unknown):
        return None
    by_path = {device.path: device for tree in devices for device in tree.walk()}
    there = by_path.get(mount.source.partition("[")[0])
    if there is None:
        return None
    tag, _, value = entry.source.partition("=")
    has = {"UUID": there.uuid, "LABEL": there.label}.get(tag.upper())
    named = value.strip("\"'") if value else entry.source
    if has is not None and has.lower() != named.lower():
        return f"{entry.target} is {there.path} with {tag} {has}, not {entry.source}"
    if has is None and value:
        bearer = next((d for d in by_path.values() if named in (d.uuid, d.label)), None)
        if bearer is not None and bearer is not there:
            return f"{entry.target} is {there.path}, and {entry.source} is {bearer.path}"
    if not value and named in by_path and named != there.path:
        return f"{entry.target} is {there.path}, not {named}"
    return None
