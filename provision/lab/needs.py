"""Whether this machine can run a lab, and what to install where it cannot."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from ..errors import Usage
from .place import RUN
from .shell import plain_environment, run

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
# What a kind of host needs beside that: tools, and device files of the kernel with what they stand for.
KIND_TOOLS = {"vm": {"qemu-system-x86_64": "qemu-system-x86", "mke2fs": "e2fsprogs"}}
KIND_NODES = {"vm": {"/dev/net/tun": "tap links", "/dev/loop-control": "loop devices"}}
NAMESPACES = ("unshare", "--mount", "--pid", "--fork", "--net", "--ipc", "--uts", "--cgroup")
PROBE = RUN / "probe"  # something is mounted there in a mount table that ends with the probe
OVERLAY = "mount -t overlay lab -o lowerdir=a,upperdir=b,workdir=c d"
ROOT = "the lab needs root: it mounts, makes a bridge and starts containers"
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")


def missing_packages(kind: str | None = None) -> list[str]:
    """Debian packages whose tools hosts of a kind need and this machine lacks."""
    path = plain_environment()["PATH"]
    tools = TOOLS | KIND_TOOLS.get(kind or "", {})
    missing = {package for tool, package in tools.items() if shutil.which(tool, path=path) is None}
    if not KEYRING.exists():
        missing.add("debian-archive-keyring")
    return sorted(missing)


def can_run(kind: str | None = None) -> str | None:
    """Why this machine cannot run lab hosts of a kind, or None where it can."""
    if os.geteuid() != 0:
        return ROOT
    if missing := missing_packages(kind):
        return f"the lab needs tools that are not installed: apt-get install {' '.join(missing)}"
    return _kernel_lacks(kind)


def could_run(kind: str | None = None) -> bool:
    """Whether only root or tools are wanting, which can be had, and not the kernel."""
    return _kernel_lacks(kind) is None


def require_root() -> None:
    """Raises Usage (exit code 2) for a user who is not root."""
    if os.geteuid() != 0:
        raise Usage(ROOT, do="run the lab's commands with sudo; no other command needs root")


def require(kind: str | None = None) -> None:
    """Raises Usage (exit code 2) with what is missing, where this machine cannot run a lab."""
    require_root()
    reason = can_run(kind)
    if reason is None:
        return
    says, _, command = reason.partition(": apt-get ")
    if command:
        raise Usage(says, do=f"apt-get {command}")
    raise Usage(reason)


def _kernel_lacks(kind: str | None = None) -> str | None:
    if os.geteuid() != 0 or missing_packages(kind):
        return None  # cannot be tried
    if run([*NAMESPACES, "true"], check=False).returncode:
        return "the lab needs namespaces that this machine does not give to root (is it a container?)"
    script = f"mount -t tmpfs lab {PROBE} && cd {PROBE} && mkdir a b c d && {OVERLAY}"
    PROBE.mkdir(parents=True, exist_ok=True)
    if run([*NAMESPACES, "sh", "-c", script], check=False).returncode:
        return "the lab needs overlayfs, which this machine's kernel does not give"
    for node, what in KIND_NODES.get(kind or "", {}).items():
        if not Path(node).exists():
            return f"lab hosts of kind {kind} need {what} ({node}), which this machine's kernel does not give"
    return None
