# Copyright (c) the gpu-provision authors
# SPDX-License-Identifier: Apache-2.0
"""The .deb files of installed packages: from apt's cache, the archive, or packed again from what is there."""

from __future__ import annotations

import os
import shutil
import subprocess

from . import repack

CACHE = "/var/cache/apt/archives"


def file_name(name, version, arch):
    """The name that apt gives the file, too."""
    return "%s_%s_%s.deb" % (name, version.replace("_", "%5f").replace(":", "%3a"), arch)


def gather(packages, folder, older):
    """Put the .deb of each (name, version, arch) into a folder; {name: {'file', 'from'}}.

    `older` are folders that may have some already: those are linked and cost no room. What neither they nor
    apt's cache has is fetched from the archive; what no archive has any more is packed again from the host's
    own files. Raises OSError or repack.Unpackable where one cannot be had.
    """
    found, lacking = {}, []
    for name, version, arch in packages:
        file = file_name(name, version, arch)
        there = next((path for path in older if _is(os.path.join(path, file), name, version)), None)
        if there:
            os.link(os.path.join(there, file), os.path.join(folder, file))
            found[name] = {"file": file, "from": "snapshot"}
        elif _is(os.path.join(CACHE, file), name, version):
            shutil.copyfile(os.path.join(CACHE, file), os.path.join(folder, file))
            found[name] = {"file": file, "from": "cache"}
        else:
            lacking.append((name, version, arch))
    _download(lacking, folder)
    for name, version, arch in lacking:
        file = file_name(name, version, arch)
        if _is(os.path.join(folder, file), name, version):
            found[name] = {"file": file, "from": "archive"}
        else:
            repack.pack(name, arch, os.path.join(folder, file))
            found[name] = {"file": file, "from": "repacked"}
    return found


def _is(path, name, version):
    """Whether a file is that package, whole enough for its control data to be read."""
    if not os.path.isfile(path):
        return False
    done = subprocess.run(
        ["dpkg-deb", "-f", path, "Package", "Version"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    said = done.stdout.decode("utf-8", "replace")
    return done.returncode == 0 and said.split() == ["Package:", name, "Version:", version]


def _download(packages, folder):
    """Fetch what the archive has, all at once; where it lacks one, one after another."""
    words = ["%s:%s=%s" % (name, arch, version) for name, version, arch in packages if arch != "all"]
    words += ["%s=%s" % (name, version) for name, version, arch in packages if arch == "all"]
    if words and not _fetched(words, folder):
        for word in words:
            _fetched([word], folder)


def _fetched(words, folder):
    done = subprocess.run(
        ["apt-get", "-q", "-o", "APT::Sandbox::User=root", "-o", "Acquire::Retries=1", "download", *words],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=dict(os.environ, LC_ALL="C.UTF-8"),
    )
    return done.returncode == 0
