# Copyright (c) the gpu-provision authors
# SPDX-License-Identifier: Apache-2.0
"""Whether the disks have room for what is to be written, summed over folders that share a file system."""

from __future__ import annotations

import os


def short(needs):
    """Words for each file system of [(folder, bytes)] that has not enough room; empty where all have."""
    needed, where = {}, {}
    for folder, size in needs:
        path = _existing(folder)
        device = os.stat(path).st_dev
        needed[device] = needed.get(device, 0) + size
        where.setdefault(device, []).append(path)
    told = []
    for device, size in needed.items():
        stat = os.statvfs(where[device][0])
        free = stat.f_bavail * stat.f_frsize
        if size > free:
            folders = ", ".join(sorted(set(where[device])))
            told.append("%s has %s free and %s are needed" % (folders, _mb(free), _mb(size)))
    return told


def _existing(folder):
    while not os.path.exists(folder):
        folder = os.path.dirname(folder)
    return folder


def _mb(size):
    return "%d MB" % (size / 1e6)
