"""apt and dpkg, read without writing their caches."""

import os
import re

from . import readonly
from .asking import ask, program
from .reading import as_json, names, peek

MYPY = False
if MYPY:
    from typing import Any, Dict, List, Set


def apt_holds() -> "Dict[str, Any]":
    """What `apt-mark showhold` prints; dpkg knows it without building apt's cache."""
    if program("dpkg-query") is None:
        return {"missing": True}
    said = ask(["dpkg-query", "-W", "-f=${db:Status-Want}\t${binary:Package}\n"], 8.0, 4 * 1024 * 1024)
    if said.get("rc") != 0:
        return said
    native = ask(["dpkg", "--print-architecture"]).get("stdout", "").strip()
    held = [line.split("\t")[1] for line in said["stdout"].splitlines() if line.startswith("hold\t")]
    lines = [name[: -len(native) - 1] if native and name.endswith(":" + native) else name for name in held]
    return {
        "argv": ["apt-mark", "showhold"],
        "rc": 0,
        "stdout": "".join(line + "\n" for line in lines),
        "stderr": "",
    }


def owning_packages(paths: "Set[str]") -> "Dict[str, str]":
    """The package of each file that dpkg knows, from its lists: `dpkg-query -S` takes ten times as long."""
    found: "Dict[str, str]" = {}
    # Merged /usr: dpkg may know the file below /bin while it runs from below /usr/bin.
    wanted = {
        b"\n" + name.encode() + b"\n": path for path in paths for name in (path, path.replace("/usr", "", 1))
    }
    for name in names("/var/lib/dpkg/info") if wanted else []:
        if name.endswith(".list"):
            try:
                with open("/var/lib/dpkg/info/" + name, "rb") as listing:
                    text = listing.read()
            except OSError:
                continue
            found.update((path, name[:-5]) for line, path in wanted.items() if line in text)
    return {path: package.partition(":")[0] for path, package in found.items()}


_STANZA = re.compile(rb"^Package: (\S+)\nStatus: \S+ \S+ (\S+)", re.M)
_known: "List[str]" = []


def installed_matching(pattern: str) -> "List[str]":
    """Names of the packages of which anything is installed, from dpkg's own file."""
    if not _known:
        try:
            with open("/var/lib/dpkg/status", "rb") as status:
                stanzas = _STANZA.findall(status.read())
        except OSError:
            return []
        _known.extend(name.decode() for name, state in stanzas if state != b"not-installed")
    return [name for name in _known if re.match(pattern, name)]


_PREBUILT = "linux-modules-nvidia-"
_CACHES = ("Dir::Cache::pkgcache=", "Dir::Cache::srcpkgcache=")


def kernel_packages() -> "List[str]":
    """Images and headers of the installed kernels, and the hardware-enablement stack of an Ubuntu release."""
    found = installed_matching(
        r"linux-image-\d|linux-headers-\d|linux-(?:image-|headers-)?generic-hwe-|linux-modules-nvidia-"
    )
    found += ["linux-headers-" + release for release in names("/lib/modules")]
    release = dict(line.split("=", 1) for line in (peek("/etc/os-release") or "").splitlines() if "=" in line)
    if release.get("ID", "").strip('"') == "ubuntu":
        hwe = "generic-hwe-" + release.get("VERSION_ID", "").strip('"')
        found += ["linux-" + hwe, "linux-image-" + hwe, "linux-headers-" + hwe, *prebuilt_modules()]
    return sorted(set(found))


def prebuilt_modules() -> "List[str]":
    """NVIDIA's modules that Ubuntu has built for the installed kernels, and for those it follows (aws).

    Their names are many and hold dots, so that one that is not there would be taken for a pattern: apt is
    asked which there are. Like the question itself it must not write apt's caches.
    """
    dry = (
        [] if readonly.confined or os.geteuid() != 0 else [word for name in _CACHES for word in ("-o", name)]
    )
    said = ask(["apt-cache", *dry, "pkgnames", _PREBUILT], 8.0, 4 * 1024 * 1024)
    flavours = [name.partition("linux-image-")[2] for name in installed_matching(r"linux-image-[a-z]")]
    ends = tuple("-" + name for name in [*names("/lib/modules"), *flavours])
    return [name for name in said.get("stdout", "").split() if "-server-" in name and name.endswith(ends)]


def apt_lists() -> "Dict[str, Any]":
    """Fetched package lists with the time of each, in seconds since 1970."""
    root, found = "/var/lib/apt/lists", []
    for name in names(root):
        if name.endswith(("_InRelease", "_Release", "_Packages", ".lz4", ".gz", ".xz")):
            status = os.stat(os.path.join(root, name))
            found.append({"name": name, "modified": int(status.st_mtime), "size": status.st_size})
    return as_json(found)


def package_locks() -> "Dict[str, Any]":
    """Who holds dpkg's and apt's locks now, from /proc/locks."""
    found = []
    paths = (
        "/var/lib/dpkg/lock-frontend",
        "/var/lib/dpkg/lock",
        "/var/lib/apt/lists/lock",
        "/var/cache/apt/archives/lock",
    )
    table = (peek("/proc/locks") or "").splitlines()
    for path in paths:
        try:
            status = os.stat(path)
        except OSError:
            continue
        wanted = "%02x:%02x:%d" % (os.major(status.st_dev), os.minor(status.st_dev), status.st_ino)
        for line in table:
            part = line.split()
            if len(part) >= 6 and part[5] == wanted and part[1] != "->":
                pid = int(part[4])
                found.append({"path": path, "pid": pid, "program": peek("/proc/%d/comm" % pid)})
    return as_json(found)
