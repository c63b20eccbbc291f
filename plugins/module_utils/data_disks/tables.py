# Copyright (c) the gpu-provision authors
# SPDX-License-Identifier: Apache-2.0
"""What the boot reads: /etc/fstab, mdadm.conf, and the copy of that in the initramfs."""

from __future__ import annotations

import glob
import hashlib
import os
import re
import shutil
import stat

from .commands import Refused, ask, run
from .notes import durable

FSTAB = "/etc/fstab"
CONFIGURATIONS = ("/etc/mdadm/mdadm.conf", "/etc/mdadm.conf")


def _text(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        return ""


def still(digest):
    """Raises Refused where fstab is not the one that the new text was made from."""
    if hashlib.sha256(_text(FSTAB).encode()).hexdigest() != digest:
        raise Refused("%s was changed by somebody else since it was looked at: run it again" % FSTAB)


def write(text, *, check):
    """Whether fstab was, or would be, written."""
    if _text(FSTAB) == text:
        return False
    if not check:
        mode = stat.S_IMODE(os.stat(FSTAB).st_mode) if os.path.exists(FSTAB) else 0o644
        durable(FSTAB, text, mode)
        run(["systemctl", "daemon-reload"])
    return True


def with_array(text, line):
    """mdadm.conf with the array's line; the same text where a line names that array already."""
    ours = re.sub("[^0-9a-f]", "", line.rpartition("UUID=")[2].lower())
    for uuid in re.findall(r"(?mi)^\s*ARRAY\s.*?\bUUID=(\S+)", text):
        if re.sub("[^0-9a-f]", "", uuid.lower()) == ours:
            return text
    return text + ("" if text.endswith("\n") or not text else "\n") + line + "\n"


def name_array(mount, *, check):
    """Whether mdadm.conf got, or would get, the line that gives the array its name at each boot."""
    found = [path for path in CONFIGURATIONS if os.path.exists(path)]
    path = found[0] if found else CONFIGURATIONS[0] if os.path.isdir("/etc/mdadm") else CONFIGURATIONS[1]
    now = _text(path)
    new = with_array(now, "ARRAY /dev/md/%s metadata=1.2 UUID=%s" % (mount["name"], mount["array"]))
    if new == now:
        return False
    if not check:
        durable(path, new, 0o644)
    return True


def refresh_initramfs(*, check):
    """Rebuild each initramfs that is older than mdadm.conf, of which it carries a copy."""
    written = max((os.stat(path).st_mtime for path in CONFIGURATIONS if os.path.exists(path)), default=0)
    images = [*glob.glob("/boot/initrd.img-*"), *glob.glob("/boot/initramfs-*.img")]
    old = [path for path in images if "kdump" not in path and os.stat(path).st_mtime < written]
    if not old:
        return False
    if not check:
        if shutil.which("update-initramfs"):
            run(["update-initramfs", "-u", "-k", "all"], 1800)
        elif shutil.which("dracut"):
            run(["dracut", "--force", "--regenerate-all", "--mdadmconf"], 1800)
        else:
            return False
        ask(["sync", "-f", "/boot"])
    return True
