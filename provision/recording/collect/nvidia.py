"""What NVIDIA's software has left on the host, told without asking the driver."""

import glob
import os
import re
import stat
import time

from .asking import ask, program
from .people import account_name
from .reading import age, as_json, names, peek, processes, read

MYPY = False
if MYPY:
    from typing import Any, Dict, List


def nvidia_devices() -> "Dict[str, Any]":
    """NVIDIA's device nodes and whether /dev/char has the link that runc needs (libnvidia-container, C35)."""
    found = []
    for path in sorted(glob.glob("/dev/nvidia*") + glob.glob("/dev/nvidia-caps/*")):
        status = os.stat(path)
        if stat.S_ISCHR(status.st_mode):
            major, minor = os.major(status.st_rdev), os.minor(status.st_rdev)
            found.append(
                {
                    "path": path,
                    "major": major,
                    "minor": minor,
                    "mode": "%04o" % stat.S_IMODE(status.st_mode),
                    "owner": account_name(status.st_uid),
                    "char_link": os.path.lexists("/dev/char/%d:%d" % (major, minor)),
                }
            )
    return as_json(found)


def nvidia_files(patterns: "List[str]") -> "Dict[str, Any]":
    """Which of the driver's files are there, and the package that owns each: leftovers have none."""
    paths = sorted(path for pattern in patterns for path in glob.glob(pattern))[:400]
    owners: "Dict[str, str]" = {}
    if os.path.isdir("/var/lib/dpkg/info"):
        # `dpkg-query -S` reads the lists of all packages (2 s); these are the few that can own such files.
        for name in names("/var/lib/dpkg/info"):
            if name.endswith(".list") and re.search(r"nvidia|cuda|cudnn|nccl|gsp", name):
                owners.update(
                    (line, name[:-5]) for line in (peek("/var/lib/dpkg/info/" + name) or "").splitlines()
                )
    elif paths and program("rpm"):
        asked = ask(["rpm", "-qf", "--qf", "%{NAME}\n", *paths], 8.0).get("stdout", "").splitlines()
        if len(asked) == len(paths):
            owners = {path: line for path, line in zip(paths, asked) if " " not in line}
    found = []
    for path in paths:
        real = os.path.realpath(path)
        # Merged /usr: dpkg may know the file below /lib while we found it below /usr/lib.
        other = path[4:] if path.startswith("/usr/") else "/usr" + path
        found.append(
            {
                "path": path,
                "target": os.path.realpath(path) if real != path else None,
                "kind": "directory" if os.path.isdir(path) else "file",
                "package": owners.get(path) or owners.get(other),
            }
        )
    return as_json(found)


def nvidia_processes() -> "Dict[str, Any]":
    """Processes that have NVIDIA's device nodes open: who uses the GPUs, told without the driver's help."""
    found = []
    for pid, name, state in processes():
        folder = "/proc/%d/fd" % pid
        for entry in names(folder):
            try:
                target = os.readlink(folder + "/" + entry)
            except OSError:
                continue
            if target.startswith("/dev/nvidia"):
                found.append({"pid": pid, "program": name, "state": state})
                break
    return as_json(found)


_HOOK = "/usr/bin/nvidia-container-runtime-hook"


def docker_started() -> "Dict[str, Any]":
    """When dockerd started and when the hook came that it looks for only then, in seconds since 1970."""
    started = [time.time() - age(pid) for pid, name, _ in processes() if name == "dockerd"]
    return as_json({
        "dockerd": round(min(started), 1) if started else None,
        "hook": round(os.stat(_HOOK).st_ctime, 1) if os.path.exists(_HOOK) else None,
    })  # fmt: skip


def cdi() -> "Dict[str, Any]":
    """Library versions that each CDI specification names; the text itself is long and is not kept."""
    found: "List[Dict[str, Any]]" = []
    for folder in ("/etc/cdi", "/var/run/cdi", "/run/cdi"):
        if folder == "/run/cdi" and os.path.realpath("/var/run") == "/run":
            continue
        for name in names(folder):
            if not name.endswith((".yaml", ".yml", ".json")):
                continue
            path = os.path.join(folder, name)
            try:
                text = read(path, 4 * 1024 * 1024)
            except OSError as e:
                found.append({"path": path, "error": e.strerror})
                continue
            kind = re.search(r"(?m)[\"']?kind[\"']?\s*:\s*[\"']?([\w./-]+)", text)
            version = re.search(r"(?m)[\"']?cdiVersion[\"']?\s*:\s*[\"']?([\d.]+)", text)
            libraries = re.findall(r"lib(?:cuda|nvidia-[a-z0-9-]+)\.so\.(\d+\.\d+(?:\.\d+)?)", text)
            devices = re.findall(r"(?m)^\s*(?:-\s+|[\"'])name[\"']?\s*:\s*[\"']?([\w.:-]+)", text)
            found.append(
                {
                    "path": path,
                    "kind": kind.group(1) if kind else None,
                    "cdi_version": version.group(1) if version else None,
                    "versions": sorted(set(libraries)),
                    "devices": devices[:200],
                }
            )
    return as_json(found)
