# Copyright (c) the gpu-provision authors
# SPDX-License-Identifier: Apache-2.0
"""What a disk is and holds at this moment, from the kernel and from libblkid."""

from __future__ import annotations

import os
import re

from .commands import Refused, ask

BY_ID, SYS = "/dev/disk/by-id", "/sys/class/block"
END = 1 << 20


class Disk:
    """One disk, found by the name that lasts; `name` is the kernel's."""

    def __init__(self, member):
        path = os.path.join(BY_ID, member["id"])
        if not os.path.exists(path):
            raise Refused("the disk %s is not there any more" % member["id"])
        self.id, self.path = member["id"], os.path.realpath(path)
        self.name = os.path.basename(self.path)
        self.check(member)

    def check(self, member):
        size = int(_read(os.path.join(SYS, self.name, "size")) or 0) * 512
        if size != member["size"]:
            raise Refused("%s has %d bytes, and was planned with %d" % (self.id, size, member["size"]))
        serial = _read(os.path.join(SYS, self.name, "device", "serial"))
        if serial and member["serial"] and serial != member["serial"]:
            raise Refused(
                "%s has the serial number %s, and was planned with %s" % (self.id, serial, member["serial"])
            )
        if os.path.exists(os.path.join(SYS, self.name, "partition")):
            raise Refused("%s is a partition" % self.id)

    def parts(self):
        folder = os.path.join(SYS, self.name)
        return sorted(n for n in os.listdir(folder) if os.path.exists(os.path.join(folder, n, "partition")))

    def marks(self):
        """All that is on the disk, in the words of the planner's facts (Surface.marks)."""
        parts = self.parts()
        found = {"%s|part|" % part[len(self.name) :] for part in parts}
        for name in [self.name, *parts]:
            found |= {"%s|%s|%s" % (name[len(self.name) :], *sign) for sign in signatures("/dev/" + name)}
        if not any(mark.startswith("|") for mark in found) and not blank(self.path):
            found.add("|bytes|")
        return sorted(found)

    def tree(self):
        """Kernel names of the disk, its partitions and all that is built on them, the outermost first."""
        found, waiting = [], [self.name]
        while waiting:
            name = waiting.pop(0)
            if name in found:
                found.remove(name)
            found.append(name)
            if name == self.name:
                waiting += self.parts()
            holders = os.path.join(SYS, name, "holders")
            waiting += sorted(os.listdir(holders)) if os.path.isdir(holders) else []
        return found

    def unused(self):
        """Raises Refused where anything of the disk is mounted or swapped to."""
        numbers = {_read(os.path.join(SYS, name, "dev")): name for name in self.tree()}
        with open("/proc/self/mountinfo") as file:
            for line in file:
                fields = line.split()
                if fields[2] in numbers:
                    raise Refused("%s: %s is mounted at %s" % (self.id, numbers[fields[2]], fields[4]))
        with open("/proc/swaps") as file:
            for line in file.readlines()[1:]:
                name = os.path.basename(os.path.realpath(line.split()[0]))
                if name in numbers.values():
                    raise Refused("%s: %s is swapped to" % (self.id, name))


def signatures(path):
    """{(kind, bare uuid)} of everything that libblkid recognises on a device."""
    rc, said = ask(["wipefs", "--parsable", path])
    if rc != 0:
        raise Refused("what is on %s cannot be read: %s" % (path, said))
    rows = [line.split(",") for line in said.splitlines() if line.startswith("0x")]
    return {(_plain(row[3]), re.sub("[^0-9a-zA-Z]", "", _plain(row[1])).lower()) for row in rows}


def blank(path):
    """Whether the first and last MiB are zero."""
    with open(path, "rb") as device:
        size = device.seek(0, os.SEEK_END)
        for start in (0, max(0, size - END)):
            device.seek(start)
            if device.read(END).strip(b"\0"):
                return False
    return True


def _plain(field):
    return re.sub(r"\\x([0-9a-fA-F]{2})", lambda m: chr(int(m.group(1), 16)), field)


def _read(path):
    try:
        with open(path) as file:
            return file.read().strip()
    except OSError:
        return ""
