# Copyright (c) the gpu-provision authors
# SPDX-License-Identifier: Apache-2.0
"""Who holds apt's and dpkg's locks. They are waited for and named, never deleted, and nobody is killed."""

from __future__ import annotations

import fcntl
import os
import struct
import time

PATHS = (
    "/var/lib/dpkg/lock-frontend",
    "/var/lib/dpkg/lock",
    "/var/lib/apt/lists/lock",
    "/var/cache/apt/archives/lock",
)
_POLL = 1.0  # seconds
_FLOCK = "hhqqi4x"  # struct flock of 64-bit Linux: type, whence, start, len, pid


def holder(paths=PATHS):
    """{'path', 'pid', 'command'} of the first lock that somebody holds, or None."""
    for path in paths:
        try:
            fd = os.open(path, os.O_RDWR)
        except OSError:
            continue
        try:
            ask = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
            kind, _, _, _, pid = struct.unpack(_FLOCK, fcntl.fcntl(fd, fcntl.F_GETLK, ask))
        finally:
            os.close(fd)
        if kind != fcntl.F_UNLCK:
            return {"path": path, "pid": pid, "command": command(pid)}
    return None


def command(pid):
    """The command line of a process; empty where it is gone or lives in another namespace."""
    try:
        with open("/proc/%d/cmdline" % pid, "rb") as file:
            return file.read().replace(b"\0", b" ").decode("utf-8", "replace").strip()
    except OSError:
        return ""


def wait(limit, paths=PATHS):
    """Wait until the locks are free. Returns (seconds waited, last holder or None, whether they are free)."""
    start = time.monotonic()
    last = None
    while True:
        now = holder(paths)
        waited = time.monotonic() - start
        if now is None:
            return waited, last, True
        last = now
        if waited >= limit:
            return waited, last, False
        time.sleep(_POLL)
