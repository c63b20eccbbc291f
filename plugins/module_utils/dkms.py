# Copyright (c) the gpu-provision authors
# SPDX-License-Identifier: Apache-2.0
"""DKMS builds of the NVIDIA module per kernel, and the first real error of a failed one."""

from __future__ import annotations

import glob
import os
import re
import shlex

# Debian: nvidia-current, nvidia-current-open; NVIDIA and Ubuntu: nvidia. nvidia-fs is GPUDirect Storage.
_MODULE = re.compile(r"^nvidia(?!-fs)[\w.-]*$")
_BROUGHT = re.compile(
    r"nvidia-|libnvidia-|libcuda1|firmware-nvidia-|glx-|dkms$|linux-headers-|initramfs-tools"
)
_ERROR = re.compile(r"(?:\berror:|\bError \d+|fatal error|No such file or directory|\*\*\* )", re.I)
# What make says after the error that ended it, and what the compiler test of a build prints on purpose.
_ECHO = re.compile(r"^(?:make(?:\[\d+\])?: \*\*\*|# )")


def added(tree="/var/lib/dkms"):
    """[(name, version)] of NVIDIA's source trees that DKMS knows."""
    found = []
    for path in sorted(glob.glob(os.path.join(tree, "nvidia*", "*", "source"))):
        version = os.path.basename(os.path.dirname(path))
        name = os.path.basename(os.path.dirname(os.path.dirname(path)))
        if _MODULE.match(name) and os.path.isdir(path):
            found.append((name, version))
    return found


def status_installed(status, name, version, release):
    """Whether `dkms status` lists a module as installed for a kernel (2.x wrote `name, version, …`)."""
    pattern = r"^%s[/,] ?%s, %s, [^:]+: installed" % tuple(map(re.escape, (name, version, release)))
    return re.search(pattern, status, re.M) is not None


def build_script(builds):
    """Shell text that builds and installs each (name, version, kernel); all are tried, one failure fails."""
    lines = ["failed=0"]
    for name, version, release in builds:
        argv = ["dkms", "install", "-m", name, "-v", version, "-k", release]
        lines.append(" ".join(shlex.quote(word) for word in argv) + " || failed=1")
    lines.append('[ "$failed" = 0 ]')
    return "\n".join(lines)


def make_log(name, version, release, tree="/var/lib/dkms"):
    """The log of a module's newest build for a kernel, wherever this DKMS keeps it, or None."""
    for pattern in (
        os.path.join(tree, name, version, "build", "make.log"),
        os.path.join(tree, name, version, release, "*", "log", "make.log"),
    ):
        for path in glob.glob(pattern):
            return path
    return None


def first_error(text):
    """The first line of a make.log that is an error rather than an echo of one; empty where none is."""
    echo = ""
    for line in text.splitlines():
        if _ERROR.search(line):
            if not _ECHO.match(line):
                return line.strip()
            echo = echo or line.strip()
    return echo


def is_driver_package(name):
    """Whether an interrupted package is one that a driver's transaction brings, so that we may finish it."""
    return _BROUGHT.match(name) is not None
