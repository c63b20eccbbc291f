# Copyright (c) the gpu-provision authors
# SPDX-License-Identifier: Apache-2.0
"""Making one file system: look at its disks, hold them, wipe them, build the array or volume, make it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import tempfile

from . import notes
from .commands import Refused, ask, run, settle
from .looking import END, Disk, blank, signatures

# Each holds a tenth of the group free: a snapshot needs room for what changes while it lives.
_FILL = "90%VG"
_REREAD = 0x125F  # BLKRRPART of linux/fs.h


class Lasting:
    """A mount that is to be made, with its disks as they were looked at."""

    def __init__(self, mount):
        self.mount = mount
        self.disks = [Disk(member) for member in mount["members"]]
        if len({disk.name for disk in self.disks}) < len(self.disks):
            raise Refused("%s: two of its disks are one and the same" % mount["path"])


def look(mount):
    """The disks of a mount, each just as it was planned. Raises Refused where one is not."""
    found = Lasting(mount)
    _compare(found)
    return found


def _compare(found):
    for disk, member in zip(found.disks, found.mount["members"]):
        disk.unused()
        now = disk.marks()
        if now != sorted(member["marks"]):
            raise Refused(
                "%s is not as it was planned: now it holds %s. Nothing was written to it."
                % (disk.id, ", ".join(now) or "nothing")
            )
        above = [name for name in disk.tree()[1:] if name not in disk.parts()]
        if above and not member["marks"]:
            raise Refused("%s is used by %s. Nothing was written to it." % (disk.id, ", ".join(above)))


def make(found):
    """The file system on its disks. What an earlier run finished but for its note is kept."""
    mount = found.mount
    if mount["resume"] and _whole(mount):
        return
    notes.write(mount)
    _release(found)
    with contextlib.ExitStack() as held:
        handles = [held.enter_context(_hold(disk)) for disk in found.disks]
        # Once more, now that nobody else can begin to use them.
        _compare(found)
        for disk, handle in zip(found.disks, handles):
            _wipe(disk, handle)
    with contextlib.ExitStack() as held:
        # udev leaves a disk alone that somebody has locked so (systemd's "Locking Block Device Access").
        for disk in found.disks:
            held.enter_context(_lock(disk))
        device = _device(found)
        _filesystem(mount, device)
    settle()


def _release(found):
    """Stop arrays and volumes that lie on these disks alone; Refused where other disks have a part."""
    ours = {disk.name for disk in found.disks}
    for disk in found.disks:
        for name in reversed(disk.tree()):
            if name in disk.parts() or name == disk.name or not os.path.exists("/sys/class/block/" + name):
                continue
            _stop(name, ours, disk)
    settle()


def _stop(name, ours, disk):
    slaves = _base(name)
    if not slaves <= ours:
        raise Refused(
            "%s: %s lies on other disks too: %s" % (disk.id, name, ", ".join(sorted(slaves - ours)))
        )
    if name.startswith("md"):
        run(["mdadm", "--stop", "/dev/" + name])
        return
    with contextlib.suppress(OSError), open("/sys/class/block/%s/dm/uuid" % name) as file:
        if file.read().startswith("LVM-"):
            run(["dmsetup", "remove", "--retry", "/dev/" + name])
            return
    raise Refused("%s is used by %s: close that first" % (disk.id, name))


def _base(name):
    """Kernel names of the disks that a device lies on."""
    folder = "/sys/class/block/%s" % name
    slaves = os.listdir(folder + "/slaves") if os.path.isdir(folder + "/slaves") else []
    if slaves:
        return set().union(*(_base(slave) for slave in slaves))
    if os.path.exists(folder + "/partition"):
        return {os.path.basename(os.path.dirname(os.path.realpath(folder)))}
    return {name}


@contextlib.contextmanager
def _hold(disk):
    """A handle that nobody shares: the kernel refuses it where the disk is mounted or a member."""
    handle = os.open(disk.path, os.O_RDWR | os.O_EXCL | os.O_CLOEXEC)
    try:
        if not stat.S_ISBLK(os.fstat(handle).st_mode):
            raise Refused("%s is no block device" % disk.path)
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield handle
    finally:
        os.close(handle)


@contextlib.contextmanager
def _lock(disk):
    # For writing, so that udev looks at the disk as this is closed.
    handle = os.open(disk.path, os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _wipe(disk, handle):
    """Take every signature away, those of partitions first, so that no half of it is found again later."""
    for name in reversed(disk.parts()):
        run(["wipefs", "--all", "--force", "/dev/" + name])
    # --force, as the handle that holds the disk is our own.
    if signatures(disk.path):
        run(["wipefs", "--all", "--force", disk.path])
    if not blank(disk.path):
        size = os.lseek(handle, 0, os.SEEK_END)
        for start in (0, max(0, size - END)):
            os.pwrite(handle, b"\0" * min(END, size), start)
        os.fsync(handle)
    with contextlib.suppress(OSError):
        # By our own handle: the kernel refuses it to others as long as we hold the disk.
        fcntl.ioctl(handle, _REREAD)
    if signatures(disk.path) or disk.parts():
        raise Refused("%s could not be wiped: %s" % (disk.id, ", ".join(disk.marks())))


def _device(found):
    """The device that the file system goes on, with the array or volume made that it lies in."""
    mount, paths = found.mount, [disk.path for disk in found.disks]
    if mount["array"]:
        node = "/dev/md/" + mount["name"]
        level = mount["layout"].replace("raid", "")
        # With a bitmap a member that was away is back in seconds; raid0 has nothing to bring back.
        bitmap = ["--bitmap=none"] if level == "0" else ["--bitmap=internal"]
        called = ["--homehost=any", "--name=" + mount["name"], "--uuid=" + mount["array"]]
        made = ["--metadata=1.2", "--level=" + level, "--raid-devices=%d" % len(paths), *bitmap]
        run(["mdadm", "--create", node, "--run", *called, *made, *paths])
        settle()
        return os.path.realpath(node)
    if mount["layout"] == "lvm":
        for member, path in zip(mount["members"], paths):
            run(["pvcreate", "--yes", "--zero", "y", "--uuid", member["volume"], "--norestorefile", path])
        run(["vgcreate", "--yes", mount["name"], *paths])
        stripes = ["--stripes", str(len(paths))] if len(paths) > 1 else []
        run(
            [
                "lvcreate",
                "--yes",
                "--wipesignatures",
                "y",
                "--extents",
                _FILL,
                "--name",
                "data",
                *stripes,
                mount["name"],
            ]
        )
        settle()
        return os.path.realpath("/dev/%s/data" % mount["name"])
    return paths[0]


def _filesystem(mount, device):
    """Without telling the disk first what is free, which takes minutes on large ones; the timer does that.

    The stripes of an array need no naming: both programs ask the kernel for them.
    """
    if mount["filesystem"] == "xfs":
        run(["mkfs.xfs", "-q", "-K", "-f", "-L", mount["label"], "-m", "uuid=" + mount["uuid"], device], 1800)
    else:
        run(
            [
                "mkfs.ext4",
                "-q",
                "-F",
                "-L",
                mount["label"],
                "-U",
                mount["uuid"],
                "-m",
                "1",
                "-E",
                "nodiscard",
                device,
            ],
            1800,
        )


def _whole(mount):
    """Whether the file system is there, whole, and can be mounted: then it is kept whatever the note says."""
    if mount["array"]:
        ask(["mdadm", "--assemble", "--scan", "--uuid=" + mount["array"]])
    elif mount["layout"] == "lvm":
        ask(["vgchange", "--activate", "y", mount["name"]])
    settle()
    rc, device = ask(["blkid", "-c", "/dev/null", "-l", "-o", "device", "-t", "UUID=" + mount["uuid"]])
    if rc != 0 or not device:
        return False
    options = "ro,norecovery" if mount["filesystem"] == "xfs" else "ro,noload"
    with tempfile.TemporaryDirectory(prefix="gpu-provision-look-") as folder:
        rc, _ = ask(["mount", "-t", mount["filesystem"], "-o", options, device, folder])
        if rc == 0:
            run(["umount", folder])
    return rc == 0
