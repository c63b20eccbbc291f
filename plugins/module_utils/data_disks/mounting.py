# Copyright (c) the gpu-provision authors
# SPDX-License-Identifier: Apache-2.0
"""Mount points and mounts: over an empty folder only, and only what fstab names there."""

from __future__ import annotations

import grp
import os
import pwd
import stat

from .commands import Refused, ask, run, settle

# As the planner's SHOWN: options that the kernel shows of a mount as they were given.
_SHOWN = (
    "noatime",
    "nodiratime",
    "relatime",
    "strictatime",
    "ro",
    "nodev",
    "nosuid",
    "noexec",
    "discard",
    "prjquota",
)


def look(mount):
    """Raises Refused where the mount point is no empty folder, or its owner is nobody here."""
    _ids(mount)
    path = mount["path"]
    if os.path.realpath(path) != path:
        raise Refused("%s leads elsewhere by a symbolic link (%s)" % (path, os.path.realpath(path)))
    if not os.path.lexists(path) or mounted(path) is not None:
        return
    if not os.path.isdir(path):
        raise Refused("%s is no folder" % path)
    held = sorted(os.listdir(path))
    if held:
        raise Refused(
            "%s is not empty (%s%s), and a mount would hide that: move it away first"
            % (path, ", ".join(held[:4]), ", …" if len(held) > 4 else "")
        )


def mounted(path):
    """{'uuid', 'options'} of what is mounted there; None where nothing is."""
    rc, said = ask(["findmnt", "--mountpoint", path, "--noheadings", "--raw", "--output", "SOURCE,OPTIONS"])
    if rc != 0 or not said:
        return None
    source, _, options = said.splitlines()[-1].partition(" ")
    # From the disk itself: udev may not have come to it yet.
    _, uuid = ask(["blkid", "-p", "-s", "UUID", "-o", "value", source])
    return {"uuid": uuid, "options": options.split(",")}


def mount(asked, *, check):
    """What was, or would be, done to have it mounted as it is in fstab."""
    path, did = asked["path"], []
    now = mounted(path)
    if now is not None and now["uuid"] != asked["uuid"]:
        raise Refused("%s is a mount of another file system (%s)" % (path, now["uuid"] or "unknown"))
    if now is None:
        did.append("mount %s" % path)
        if not check:
            _mount(asked)
    elif lacking := [o for o in asked["options"] if o in _SHOWN and o not in now["options"]]:
        did.append("mount %s with %s" % (path, ", ".join(lacking)))
        if not check:
            _again(asked, lacking)
    if not (check and now is None):
        did += _top(asked, check=check)
    return did


def _mount(asked):
    path = asked["path"]
    os.makedirs(path, mode=0o755, exist_ok=True)
    # Nothing may have been put there since it was looked at.
    look(asked)
    settle()
    run(["mount", path], 120)
    now = mounted(path)
    if now is None or now["uuid"] != asked["uuid"]:
        raise Refused("%s was mounted and is not there: `systemctl status` of its mount unit says why" % path)


def _again(asked, lacking):
    if "prjquota" in lacking:
        # XFS takes up quotas only as it is mounted.
        run(["umount", asked["path"]])
        run(["mount", asked["path"]], 120)
    else:
        run(["mount", "-o", "remount," + ",".join(lacking), asked["path"]])


def _ids(asked):
    """(uid, gid) that are asked for; None for one that is not."""
    try:
        uid = None if asked["owner"] is None else _number(asked["owner"], pwd.getpwnam)
        gid = None if asked["group"] is None else _number(asked["group"], grp.getgrnam)
    except KeyError as e:
        raise Refused("%s: %s" % (asked["path"], str(e).strip("'\""))) from None
    return uid, gid


def _number(name, find):
    return int(name) if name.isdigit() else find(name)[2]


def _top(asked, *, check):
    """Owner, group and mode of the top folder of what is mounted there."""
    path, did = asked["path"], []
    now, (uid, gid) = os.stat(path), _ids(asked)
    for word, wanted, has in (("owner", uid, now.st_uid), ("group", gid, now.st_gid)):
        if wanted is not None and wanted != has:
            did.append("give %s the %s %s" % (path, word, asked[word]))
    if did and not check:
        os.chown(path, -1 if uid is None else uid, -1 if gid is None else gid)
    mode = None if asked["mode"] is None else int(asked["mode"], 8)
    if mode is not None and mode != stat.S_IMODE(now.st_mode):
        did.append("give %s the mode %s" % (path, asked["mode"]))
        if not check:
            os.chmod(path, mode)
    return did
