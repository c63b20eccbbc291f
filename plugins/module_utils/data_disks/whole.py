# Copyright (c) the gpu-provision authors
# SPDX-License-Identifier: Apache-2.0
"""All of one call, in the order that lets it be cut off anywhere: notes, file systems, tables, mounts."""

from __future__ import annotations

from . import making, mounting, notes, tables
from .commands import one_at_a_time


def work(asked, *, check, did):
    """Adds to `did` what was, or would be, done. All that could refuse comes before the first change."""
    with one_at_a_time(wanted=not check):
        _work(asked, check=check, did=did)


def _work(asked, *, check, did):
    mounts = asked["mounts"]
    tables.still(asked["fstab_was"])
    for mount in mounts:
        mounting.look(mount)
    lasting = [making.look(mount) for mount in mounts if mount["make"]]
    for made in lasting:
        did.append("make %s for %s" % (made.mount["filesystem"], made.mount["path"]))
        if not check:
            making.make(made)
    for mount in mounts:
        if mount["array"] and tables.name_array(mount, check=check):
            did.append("name the array /dev/md/%s" % mount["name"])
    if tables.write(asked["fstab"], check=check):
        did.append("write %s" % tables.FSTAB)
    for mount in mounts:
        did.extend(mounting.mount(mount, check=check))
    if any(mount["array"] for mount in mounts) and tables.refresh_initramfs(check=check):
        did.append("rebuild the initramfs")
    # The last of all: whatever a run that was cut off has left undone, the next one sees by its notes.
    for mount in mounts:
        if notes.there(mount):
            did.append("finish what was begun for %s" % mount["path"])
            if not check:
                notes.forget(mount)
