# Copyright (c) the gpu-provision authors
# SPDX-License-Identifier: Apache-2.0
"""What was begun on which disks, on the host's own disk before the first byte is written to another."""

from __future__ import annotations

import contextlib
import json
import os

FOLDER = "/var/lib/gpu-provision/disks"


def _path(mount):
    return os.path.join(FOLDER, "%s.json" % mount["uuid"])


def write(mount):
    """Keep the note of an earlier run where there is one: it knows what was on the disks at first."""
    path = _path(mount)
    if os.path.exists(path):
        return
    os.makedirs(FOLDER, mode=0o700, exist_ok=True)
    note = {key: mount[key] for key in ("path", "filesystem", "layout", "uuid")}
    note["members"] = [{"id": member["id"], "marks": member["marks"]} for member in mount["members"]]
    durable(path, json.dumps(note, indent=1) + "\n", 0o600)


def forget(mount):
    with contextlib.suppress(FileNotFoundError):
        os.unlink(_path(mount))
    sync(FOLDER)


def there(mount):
    """Whether a run, this one or an earlier, began on this mount."""
    return os.path.exists(_path(mount))


def durable(path, text, mode):
    """Write a file so that after a power cut it is the old one or the new one, whole."""
    half = os.path.join(os.path.dirname(path), ".%s.gpu-provision" % os.path.basename(path))
    try:
        with open(os.open(half, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "w") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        os.chmod(half, mode)
        os.replace(half, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(half)
        raise
    sync(os.path.dirname(path))


def sync(folder):
    """Have a folder's entries on the disk."""
    if not os.path.isdir(folder):
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
