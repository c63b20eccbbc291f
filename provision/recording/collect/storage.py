"""Disks and file systems beyond what lsblk and findmnt tell."""

import glob
import os
import re

from . import readonly
from .asking import ask_all, program
from .reading import as_json, link, names, peek

MYPY = False
if MYPY:
    from typing import Any, Dict, List, Set


def disks_by_id() -> "Dict[str, Any]":
    """Names of /dev/disk/by-id and what each points at."""
    root = "/dev/disk/by-id"
    return as_json({name: link(os.path.join(root, name)) for name in names(root)})


_REMOTE = re.compile(r"^(?:nfs|cifs|smb|ceph|lustre|fuse|9p|afs|gpfs|beegfs|glusterfs|autofs|virtiofs)")
_VIRTUAL = frozenset(
    (
        "proc sysfs devtmpfs devpts cgroup cgroup2 securityfs pstore efivarfs bpf tracefs debugfs configfs "
        "mqueue hugetlbfs fusectl binfmt_misc nsfs rpc_pipefs ramfs squashfs iso9660"
    ).split()
)


def space() -> "Dict[str, Any]":
    """Size and use of each local file system, in bytes. Network file systems can hang and are left out."""
    found: "List[Dict[str, Any]]" = []
    seen: "Set[str]" = set()
    users, groups = _named("/etc/passwd"), _named("/etc/group")
    readonly.back_to_host_mounts()
    for line in (peek("/proc/self/mountinfo") or "").splitlines():
        left, _, right = line.partition(" - ")
        part, kind, source = left.split(), right.split()[0], right.split()[1]
        if kind in _VIRTUAL or _REMOTE.match(kind) or part[2] in seen:
            continue
        target = part[4].encode().decode("unicode_escape")
        try:
            status, top = os.statvfs(target), os.stat(target)
        except OSError:
            continue
        seen.add(part[2])
        found.append(
            {
                "target": target,
                "source": source,
                "type": kind,
                "size": status.f_blocks * status.f_frsize,
                "free": status.f_bfree * status.f_frsize,
                "available": status.f_bavail * status.f_frsize,
                "inodes": status.f_files,
                "inodes_free": status.f_ffree,
                "owner": users.get(top.st_uid, str(top.st_uid)),
                "group": groups.get(top.st_gid, str(top.st_gid)),
                "mode": "%04o" % (top.st_mode & 0o7777),
            }
        )
    return as_json(found)


def _named(path: str) -> "Dict[int, str]":
    """Names by number from /etc/passwd or /etc/group alone: a directory service may hang."""
    rows = [line.split(":") for line in (peek(path) or "").splitlines()]
    return {int(row[2]): row[0] for row in reversed(rows) if len(row) > 2 and row[2].isdigit()}


def nvme_smart() -> "Dict[str, Any]":
    disks = [path for path in sorted(glob.glob("/dev/nvme[0-9]*n[0-9]*")) if re.search(r"n\d+$", path)]
    if not disks:
        return {"disks": []}
    if program("smartctl") is None:
        return {"missing": True}
    if os.geteuid() != 0:
        return {"denied": True}
    said = ask_all([["smartctl", "-j", "-a", path] for path in disks], 6.0)
    return {"disks": [dict(answer, device=path) for path, answer in zip(disks, said)]}
