# Copyright (c) the gpu-provision authors
# SPDX-License-Identifier: Apache-2.0
"""What apt and dpkg say: packages as they are, what a transaction would do, why one failed."""

from __future__ import annotations

import os
import re
import shlex
import subprocess

ENVIRONMENT = {"LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"}
# Recommends stay out: nvidia-kernel-dkms recommends nvidia-driver, which brings a desktop's display stack.
# A changed configuration file of the administrator's is kept.
OPTIONS = (
    "-y",
    "--no-install-recommends",
    "-o", "Dpkg::Options::=--force-confdef",
    "-o", "Dpkg::Options::=--force-confold",
    "-o", "APT::Get::Show-Upgraded=true",
)  # fmt: skip
_UNITS = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_STEP = re.compile(r"^(Inst|Remv) (\S+)(?: \[([^\]]*)\])?(?: \(([^\s)]+)[^)]*\))?", re.M)
_NEED = re.compile(r"^Need to get ([\d.,]+) ([kMGT]?B)(?:/[\d.,]+ [kMGT]?B)? of archives", re.M)
_USED = re.compile(r"^After this operation, ([\d.,]+) ([kMGT]?B) of additional disk space will be used", re.M)
_TELLING = (
    "E: ", "dpkg: error", "Error! ", "Err:", "W: Failed to fetch", "dpkg: dependency problems",
)  # fmt: skip
_LISTS = ("Release", "Packages", "Packages.lz4", "Packages.xz")
_FULL = "No space left on device"


def ask(argv):
    """Run a question to apt or dpkg; (rc, both streams as text)."""
    done = subprocess.run(
        list(argv), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=dict(os.environ, **ENVIRONMENT)
    )
    return done.returncode, done.stdout.decode("utf-8", "replace")


def packages():
    """{name: {'state', 'version'}} of all that dpkg knows; the state is dpkg's three letters."""
    rc, text = ask(["dpkg-query", "-W", "-f=${db:Status-Abbrev}\\t${Package}\\t${Version}\\n"])
    found = {}
    if rc == 0:
        for line in text.splitlines():
            state, _, rest = line.partition("\t")
            name, _, version = rest.partition("\t")
            # With two architectures of one package the installed one counts.
            if name and not (name in found and installed(found[name])):
                found[name] = {"state": state, "version": version}
    return found


def installed(package):
    return package is not None and package["state"][1:2] == "i" and package["state"][2:3] in (" ", "")


def present(package):
    """Whether anything of a package is unpacked, whole or not; its configuration files alone do not count."""
    return package is not None and package["state"][1:2] not in ("n", "c", "")


def half_done(known):
    """Names that an interrupted dpkg left unpacked, half-installed, half-configured or awaiting triggers."""
    return sorted(name for name, p in known.items() if p["state"][1:2] in "UFHWt" or p["state"][2:3] == "R")


def holds():
    """Names of the packages that are held. `apt-mark showhold` would build apt's cache first."""
    rc, text = ask(["dpkg-query", "-W", "-f=${db:Status-Want}\\t${Package}\\n"])
    rows = [line.split("\t") for line in text.splitlines()] if rc == 0 else []
    return {row[1] for row in rows if row[0] == "hold"}


def missing(wanted, known):
    """Of `NAME`, `NAME=VERSION` and `NAME-` those that are not installed so, or not gone."""
    return [want for want in wanted if not satisfied(want, known)]


def satisfied(want, known):
    if want.endswith("-"):
        return not present(known.get(want[:-1]))
    name, _, version = want.partition("=")
    package = known.get(name)
    return installed(package) and (not version or package["version"] == version)


def simulate(arguments):
    """What `apt-get install ARGUMENTS` would do: (steps, None), or (None, apt's own words).

    A step is {'do': 'Inst'|'Remv', 'name', 'old', 'new', 'back'}; `old` and `new` are versions or None,
    `back` is true where the new one is older.
    """
    rc, text = ask(["apt-get", "-s", "-o", "Debug::NoLocking=1", *OPTIONS, "--allow-change-held-packages",
                    "--allow-downgrades", "install", *arguments])  # fmt: skip
    if rc != 0:
        return None, complaint(text)
    steps = []
    for do, name, old, new in _STEP.findall(text):
        step = {"do": do, "name": name.split(":")[0], "old": old or None, "new": new or None}
        step["back"] = bool(old and new) and older(new, old)
        steps.append(step)
    return steps, None


def older(version, than):
    return ask(["dpkg", "--compare-versions", version, "lt", than])[0] == 0


def sizes(arguments):
    """(bytes to download, bytes to unpack) by apt's own figures; None where it prints none.

    With --print-uris apt counts and stops there. --assume-no would not do: where there is nothing but
    what was named, apt asks no question and installs.
    """
    _, text = ask(["apt-get", "--print-uris", "-o", "Debug::NoLocking=1", *OPTIONS,
                   "--allow-change-held-packages", "--allow-downgrades", "install", *arguments])  # fmt: skip
    return _bytes(_NEED.search(text)), _bytes(_USED.search(text))


def _bytes(match):
    return int(float(match.group(1).replace(",", "")) * _UNITS[match.group(2)]) if match else None


def complaint(text):
    """The lines of apt's output that say why, in apt's words."""
    lines = [line.rstrip() for line in text.splitlines()]
    if "The following packages have unmet dependencies:" in lines:
        start = lines.index("The following packages have unmet dependencies:")
        errors = [line for line in lines[start + 8 :] if line.startswith("E: ")]
        return "\n".join(lines[start : start + 8] + errors)
    telling = [line for line in lines if line.lstrip().startswith(_TELLING) or _FULL in line]
    return "\n".join(telling[:8] or lines[-8:])


def update():
    """`apt-get update`; None, or apt's words where a source failed."""
    rc, text = ask(["apt-get", "update", "-q"])
    failed = [line for line in text.splitlines() if line.startswith(("E: ", "W: Failed", "Err:"))]
    return complaint(text) if rc != 0 or failed else None


def lists_age(now):
    """Seconds since the newest package list was fetched; None where there is none."""
    folder = "/var/lib/apt/lists"
    try:
        names = [n for n in os.listdir(folder) if n.endswith(_LISTS)]
        return now - max(os.stat(os.path.join(folder, name)).st_mtime for name in names) if names else None
    except OSError:
        return None


def install_script(arguments, lock_timeout):
    """The shell text of the transaction itself; it is run only after its simulation was judged."""
    argv = ["apt-get", "-q", "-o", "DPkg::Lock::Timeout=%d" % lock_timeout, *OPTIONS,
            "--allow-change-held-packages", "--allow-downgrades", "install", *arguments]  # fmt: skip
    return " ".join(shlex.quote(word) for word in argv)


def repair_script(unwanted):
    """Shell text that finishes what dpkg left; what is no longer wanted goes first, as it may be at fault."""
    lines = ["dpkg --force-remove-reinstreq --remove %s" % shlex.quote(name) for name in unwanted]
    return " &&\n".join([*lines, "dpkg --force-confdef --force-confold --configure -a"])
