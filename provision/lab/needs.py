"""Whether this machine can run a lab, and what to install where it cannot."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from ..errors import Usage
from .shell import plain_environment

# Tool and the Debian package that has it.
TOOLS = {
    "mmdebstrap": "mmdebstrap",
    "systemd-nspawn": "systemd-container",
    "iptables": "iptables",
    "ip": "iproute2",
    "mount": "mount",
    "unshare": "util-linux",
    "ssh-keygen": "openssh-client",
    "ssh": "openssh-client",
    "setpriv": "util-linux",
}
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")


def missing_packages() -> list[str]:
    """Debian packages whose tools the lab needs and this machine lacks."""
    path = plain_environment()["PATH"]
    missing = {package for tool, package in TOOLS.items() if shutil.which(tool, path=path) is None}
    if not KEYRING.exists():
        missing.add("debian-archive-keyring")
    return sorted(missing)


def can_run() -> str | None:
    """Why this machine cannot run a lab, or None where it can."""
    if os.geteuid() != 0:
        return "the lab needs root: it mounts, makes a bridge and starts containers"
    if missing := missing_packages():
        return f"the lab needs tools that are not installed: apt-get install {' '.join(missing)}"
    filesystems = Path("/proc/filesystems").read_text().split()
    if "overlay" not in filesystems and not _loads("overlay"):
        return "the lab needs overlayfs, which this machine's kernel does not have"
    if not Path("/proc/self/ns/net").exists() or not Path("/proc/self/ns/cgroup").exists():
        return "the lab needs network and cgroup namespaces, which this machine's kernel does not have"
    return None


def require() -> None:
    """Raises Usage (exit code 2) with what is missing, where this machine cannot run a lab."""
    reason = can_run()
    if reason is None:
        return
    says, _, command = reason.partition(": apt-get ")
    if command:
        raise Usage(says, do=f"apt-get {command}")
    if os.geteuid() != 0:
        raise Usage(reason, do="run the lab's commands with sudo; no other command needs root")
    raise Usage(reason)


def _loads(module: str) -> bool:
    from .shell import run

    return shutil.which("modprobe") is not None and run(["modprobe", module], check=False).returncode == 0
