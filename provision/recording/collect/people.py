"""Accounts, and who is asking. No directory service is asked: it could hang."""

import grp
import os
import pwd
import re

from .reading import peek

MYPY = False
if MYPY:
    from typing import Dict, List, Optional, Tuple


_names: "Dict[int, str]" = {}


def account_name(uid: int) -> str:
    if not _names:
        _names.update((entry[2], entry[0]) for entry in reversed(passwd()))
    return _names.get(uid, str(uid))


def passwd() -> "List[Tuple[str, str, int, int, str, str]]":
    """(name, password field, uid, gid, home, shell) of /etc/passwd; no directory service is asked."""
    found = []
    for line in (peek("/etc/passwd") or "").splitlines():
        part = line.split(":")
        if len(part) == 7 and part[2].isdigit() and part[3].isdigit():
            found.append((part[0], part[1], int(part[2]), int(part[3]), part[5], part[6]))
    return found


def logins() -> "List[Tuple[str, str, int, int, str, str]]":
    """Accounts that a person or a key can log in to."""
    return [
        entry
        for entry in passwd()
        if entry[2] == 0 or not entry[5].endswith(("/nologin", "/false", "/sync", "/halt", "/shutdown"))
    ]


def operator_address() -> "Optional[str]":
    """Where the SSH connection that we run over comes from; sudo drops the variable, the parents keep it."""
    pid, hops = os.getpid(), 0
    while pid > 1 and hops < 12:
        found = re.search(r"(?:^|\0)SSH_CONNECTION=(\S+) ", peek("/proc/%d/environ" % pid) or "")
        if found:
            return found.group(1)
        parent = re.search(r"(?m)^PPid:\s*(\d+)", peek("/proc/%d/status" % pid) or "")
        pid, hops = int(parent.group(1)) if parent else 0, hops + 1
    return None


def operator_name() -> str:
    name = os.environ.get("SUDO_USER", "")
    if name and name != "root":
        return name
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def members(group: str) -> "List[str]":
    pattern = re.compile(re.escape(group).replace(r"\*", ".*").replace(r"\?", ".") + "$")
    found = []
    for line in (peek("/etc/group") or "").splitlines():
        part = line.split(":")
        if len(part) == 4 and pattern.match(part[0]):
            found += [name for name in part[3].split(",") if name]
            found += [entry[0] for entry in passwd() if str(entry[3]) == part[2]]
    return found


def groups_of(name: str, gid: int) -> "List[str]":
    """Names of all groups of an account, which AllowGroups goes by."""
    found = []
    for group in os.getgrouplist(name, gid):
        try:
            found.append(grp.getgrgid(group).gr_name)
        except KeyError:
            found.append(str(group))
    return found
