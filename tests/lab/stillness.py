"""What of a lab host has to be the same after it was only read: its files, and what runs and is loaded."""

from __future__ import annotations

import os
from pathlib import Path

# Not compared: what is no file system of the host's, logs, and the package files that all lab hosts share.
APART = ("proc", "run", "sys", "dev", "var/log", "var/cache/apt/archives")


def tree(root: Path) -> dict[str, tuple[object, ...]]:
    """Every file with all that a change would touch; the time of the last change of the inode among it."""
    found: dict[str, tuple[object, ...]] = {}
    waiting = [root]
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                name = os.path.relpath(entry.path, root)
                if name in APART:
                    continue
                status = entry.stat(follow_symlinks=False)
                target = str(Path(entry.path).readlink()) if entry.is_symlink() else ""
                found[name] = (
                    status.st_mode, status.st_uid, status.st_gid, status.st_size,
                    status.st_mtime_ns, status.st_ctime_ns, target,
                )  # fmt: skip
                if entry.is_dir(follow_symlinks=False) and not os.path.ismount(entry.path):
                    waiting.append(Path(entry.path))
    return found


STATE = (
    "systemctl list-units --all --no-pager --plain --no-legend --type=service,socket,timer,mount"
    " | awk '{print $1,$2,$3}' | grep -v 'session-\\|user@\\|user-runtime\\|ssh@'; "
    "dpkg-query -W -f='${Package} ${Version} ${db:Status-Abbrev}\\n'; dpkg --get-selections; "
    "cat /proc/modules 2>/dev/null; ls -l /dev; ls -lR --time-style=full-iso /run/gpu-double 2>/dev/null; "
    "sysctl -a 2>/dev/null | grep '^vm\\|^net.core\\|^kernel.\\(printk\\|numa\\|perf\\)'; "
    "cat /proc/1/mountinfo | wc -l; ls -l /etc/passwd /etc/shadow; nft -s list ruleset"
)
