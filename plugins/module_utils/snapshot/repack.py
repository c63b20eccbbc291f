# Copyright (c) the gpu-provision authors
# SPDX-License-Identifier: Apache-2.0
"""Pack an installed package again: for a version that no archive has any more."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile

INFO = "/var/lib/dpkg/info"
# What dpkg made itself, and what is no part of a package.
_NOT_CONTROL = ("list", "md5sums.dpkg-new")


class Unpackable(Exception):
    """The package cannot be packed again; holds the words for a person."""


def pack(name, arch, path):
    """Write the .deb of an installed package from its files, its scripts and dpkg's own record of it.

    A configuration file comes as it is now, not as the package brought it. Files that the administrator
    left out (documentation, translations) are left out.
    """
    control = _ask(["dpkg-query", "-s", "%s:%s" % (name, arch) if arch != "all" else name])
    stage = tempfile.mkdtemp(dir=os.path.dirname(path))
    try:
        os.chmod(stage, 0o755)
        _files(name, arch, stage)
        folder = os.path.join(stage, "DEBIAN")
        os.mkdir(folder, 0o755)
        with open(os.path.join(folder, "control"), "w", encoding="utf-8") as out:
            out.write(control_text(control))
        _scripts(name, arch, folder, stage)
        _ask(["dpkg-deb", "--build", stage, path])
    finally:
        shutil.rmtree(stage, ignore_errors=True)


def control_text(status):
    """A package's control file out of what `dpkg-query -s` says of it."""
    text = re.sub(r"(?m)^(Status|Config-Version): .*\n", "", status)
    return re.sub(r"(?m)^Conffiles:\n(?: .*\n)*", "", text).strip() + "\n"


def diverted(said, name):
    """{path: where the package's own file lies} out of what `dpkg-divert --list` says."""
    found = re.findall(r"(?m)^(?:local )?diversion of (\S+) to (\S+)(?: by (\S+))?$", said)
    return {path: away for path, away, by in found if by != name}


def _files(name, arch, stage):
    listed = _ask(["dpkg-query", "-L", "%s:%s" % (name, arch) if arch != "all" else name]).splitlines()
    away = diverted(_ask(["dpkg-divert", "--list"]), name)
    for path in (line for line in listed if line.startswith("/") and line != "/."):
        real, there = away.get(path, path), stage + path
        if os.path.isdir(real) and not os.path.islink(real):
            os.makedirs(there, exist_ok=True)
            shutil.copystat(real, there)
            status = os.stat(real)
            os.chown(there, status.st_uid, status.st_gid)
        elif os.path.lexists(real):
            os.makedirs(os.path.dirname(there), exist_ok=True)
            _ask(["cp", "-a", "--", real, there])


def _scripts(name, arch, folder, stage):
    for file in os.listdir(INFO):
        stem, _, kind = file.rpartition(".")
        if stem not in (name, "%s:%s" % (name, arch)) or kind in _NOT_CONTROL:
            continue
        shutil.copy2(os.path.join(INFO, file), os.path.join(folder, kind))
    path = os.path.join(folder, "conffiles")
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            lines = [line for line in file if os.path.lexists(stage + line.strip())]
        with open(path, "w", encoding="utf-8") as out:
            out.writelines(lines)


def _ask(argv):
    done = subprocess.run(
        argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(os.environ, LC_ALL="C.UTF-8")
    )
    if done.returncode != 0:
        raise Unpackable("%s: %s" % (" ".join(argv[:3]), done.stderr.decode("utf-8", "replace").strip()))
    return done.stdout.decode("utf-8", "replace")
