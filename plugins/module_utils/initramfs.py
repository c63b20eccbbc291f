# Copyright (c) the gpu-provision authors
# SPDX-License-Identifier: Apache-2.0
"""Which initramfs images are older than a file that they carry a copy of, such as one of modprobe.d."""

from __future__ import annotations

import glob
import os
import shlex

_IMAGE = "initrd.img-"


def stale(path, boot="/boot"):
    """Releases whose initramfs is older than `path`; none where the file is not there."""
    try:
        written = os.stat(path).st_mtime
    except OSError:
        return []
    found = []
    for image in sorted(glob.glob(os.path.join(boot, _IMAGE + "*"))):
        release = os.path.basename(image)[len(_IMAGE) :]
        kernel = os.path.join(boot, "vmlinuz-" + release)
        if os.path.exists(kernel) and os.stat(image).st_mtime < written:
            found.append(release)
    return found


def script(releases):
    return " &&\n".join("update-initramfs -u -k %s" % shlex.quote(release) for release in releases)
