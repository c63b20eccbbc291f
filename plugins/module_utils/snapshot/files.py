# Copyright (c) the gpu-provision authors
# SPDX-License-Identifier: Apache-2.0
"""Files as they were: what one is, kept by its checksum, and put back in one step each."""

from __future__ import annotations

import glob
import hashlib
import os
import shutil
import stat

ABSENT = {"kind": "absent"}


def expand(patterns):
    """The paths that patterns name; one without a wildcard names itself, there or not."""
    found = []
    for pattern in patterns:
        wild = any(c in pattern for c in "*?[")
        found += sorted(p for p in glob.glob(pattern) if not os.path.isdir(p)) if wild else [pattern]
    return list(dict.fromkeys(found))


def look(path):
    """What is at a path: {'kind': absent|link|file|other, …}."""
    try:
        status = os.lstat(path)
    except OSError:
        return dict(ABSENT)
    if stat.S_ISLNK(status.st_mode):
        return {"kind": "link", "target": os.readlink(path)}
    if not stat.S_ISREG(status.st_mode):
        return {"kind": "other"}
    with open(path, "rb") as file:
        digest = hashlib.sha256(file.read()).hexdigest()
    mode = stat.S_IMODE(status.st_mode)
    return {"kind": "file", "sha256": digest, "mode": mode, "uid": status.st_uid, "gid": status.st_gid}


def keep(path, folder):
    """What is at a path, with its contents copied below a folder."""
    found = look(path)
    if found["kind"] == "file":
        with open(path, "rb") as file:
            data = file.read()
        found["sha256"] = hashlib.sha256(data).hexdigest()
        fresh = os.open(os.path.join(folder, found["sha256"]), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(fresh, "wb") as out:
            out.write(data)
    return found


def differing(then):
    """Of {path: what it was} the paths that are something else now."""
    return [path for path, was in then.items() if was["kind"] != "other" and look(path) != was]


def put_back(path, was, folder):
    """Make a path what it was, at once: who reads it sees the old or the new, and never a half."""
    if was["kind"] == "absent":
        if os.path.lexists(path):
            os.unlink(path)
        return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    fresh = path + ".gpu-provision-back"
    if os.path.lexists(fresh):
        os.unlink(fresh)
    if was["kind"] == "link":
        os.symlink(was["target"], fresh)
    else:
        shutil.copyfile(os.path.join(folder, was["sha256"]), fresh)
        os.chmod(fresh, was["mode"])
        os.chown(fresh, was["uid"], was["gid"])
    os.rename(fresh, path)
