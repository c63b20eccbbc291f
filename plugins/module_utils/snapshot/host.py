# Copyright (c) the gpu-provision authors
# SPDX-License-Identifier: Apache-2.0
"""What a host is now, as far as a snapshot keeps it: packages, units, modules, GPU settings."""

from __future__ import annotations

import os
import re
import subprocess

# The driver, whoever built it, with what its releases depend on; not toolkits, which nothing replaces.
_DRIVER = re.compile(
    r"^(nvidia-(?!cuda-toolkit|cuda-doc|visual|nsight)|libnvidia-|libcuda1$|libcuda1-|firmware-nvidia-|cuda-drivers"
    r"|linux-modules-nvidia|libnvidia|nvlsm$|libnvsdm|glx-|xserver-xorg-video-nvidia|libegl-nvidia|libgl1-nvidia"
    r"|libgles-nvidia|libglx-nvidia|libnvcuvid|libnvoptix)"
)
_SETTINGS = "uuid,persistence_mode,compute_mode,power.limit,ecc.mode.pending,mig.mode.pending"


def packages():
    """{name: {'state', 'version', 'arch', 'size'}}; of several architectures the one that is installed."""
    text = ask(
        [
            "dpkg-query",
            "-W",
            r"-f=${db:Status-Abbrev}\t${Package}\t${Version}\t${Architecture}\t${Installed-Size}\n",
        ]
    )
    found = {}
    for line in (text or "").splitlines():
        state, name, version, arch, size = (line.split("\t") + [""] * 5)[:5]
        if name and not (name in found and found[name]["state"][1:2] == "i"):
            found[name] = {"state": state, "version": version, "arch": arch, "size": int(size or 0)}
    return found


def scope(known, ours):
    """Names of the installed packages whose .deb files a snapshot keeps."""
    there = (name for name, package in known.items() if package["state"][1:2] == "i")
    return sorted(name for name in there if _DRIVER.match(name) or name in ours)


def marks(what):
    """Names that apt-mark shows as `hold`, `manual` or `auto`."""
    return sorted((ask(["apt-mark", "show" + what]) or "").split())


def units(names):
    """{unit: {'enabled', 'active'}} of those that are there."""
    found = {}
    for name in names:
        said = ask(["systemctl", "show", name, "--property=LoadState,UnitFileState,ActiveState"]) or ""
        state = dict(line.split("=", 1) for line in said.splitlines() if "=" in line)
        if state.get("LoadState") not in (None, "", "not-found"):
            found[name] = {"enabled": state.get("UnitFileState", ""), "active": state.get("ActiveState", "")}
    return found


def settings():
    """Lines of nvidia-smi, one a GPU; None where no driver is loaded or it does not answer."""
    if not os.path.exists("/proc/driver/nvidia/version"):
        return None
    said = ask(["nvidia-smi", "--query-gpu=" + _SETTINGS, "--format=csv,noheader"], seconds=60)
    return None if said is None else sorted(line.strip() for line in said.splitlines() if line.strip())


def modules():
    """What DKMS has built, line by line."""
    return sorted((ask(["dkms", "status"]) or "").splitlines())


def ask(argv, seconds=120):
    """A command's output; None where it fails, hangs or is not there."""
    try:
        done = subprocess.run(
            argv,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=seconds,
            env=dict(os.environ, LC_ALL="C.UTF-8"),
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else None
