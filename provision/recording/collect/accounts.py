"""Who can log in, with what, and what sudo gives them."""

import base64
import errno
import hashlib
import os
import re
import stat
import time

from .asking import ask, program, side_by_side
from .people import account_name, groups_of, logins, operator_name, passwd
from .reading import as_json, number, read
from .sshd import sshd_arguments

MYPY = False
if MYPY:
    from typing import Any, Dict, List, Optional, Tuple


_KEY_TYPE = re.compile(
    r"(?:ssh-(?:rsa|ed25519|dss)|ecdsa-sha2-\S+|sk-\S+@openssh\.com|ssh-\S+-cert-v01@openssh\.com)$"
)


class _KeyFile:
    """One file of keys. `total` counts plain and bound keys, `forced` those that only run one command."""

    def __init__(self) -> None:
        self.total = self.forced = self.authorities = 0
        self.plain: "List[str]" = []
        self.bound: "List[str]" = []


def _fingerprint(blob: str) -> "Optional[str]":
    """As `ssh-keygen -l` prints it; None where that is no key."""
    try:
        digest = hashlib.sha256(base64.b64decode(blob)).digest()
    except ValueError:
        return None
    return "SHA256:" + base64.b64encode(digest).decode().rstrip("=")


def _keys(path: str) -> "_KeyFile":
    """What one file holds; fingerprints of keys with and without options are kept apart."""
    found = _KeyFile()
    for line in read(path).splitlines():
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        # Options may hold quoted spaces; the key type ends them.
        bare = re.sub(r"\"(?:[^\"\\]|\\.)*\"", '""', line)
        words = bare.split()
        options = "" if _KEY_TYPE.match(words[0]) else words[0].lower()
        if not any(_KEY_TYPE.match(word) for word in words[:2]) or len(words) < (3 if options else 2):
            continue
        if "cert-authority" in options.split(","):
            found.authorities += 1
            continue
        found.total += 1
        found.forced += "command=" in options
        print_ = _fingerprint(words[2 if options else 1])
        if print_:
            (found.bound if options else found.plain).append(print_)
    return found


def _modes_refused(path: str, home: str, uid: int) -> "Optional[str]":
    """Why sshd's StrictModes would ignore a key file: from the file up to the home directory, each must
    belong to root or the user and be writable by nobody else (auth_secure_path in OpenSSH's misc.c)."""
    current, home = os.path.realpath(path), os.path.realpath(home)
    while True:
        status = os.stat(current)
        if status.st_uid not in (0, uid) or status.st_mode & 0o022:
            return "%s: mode %04o, owner %s" % (
                current,
                stat.S_IMODE(status.st_mode),
                account_name(status.st_uid),
            )
        if current in (home, "/"):
            return None
        current = os.path.dirname(current)


def _sudo(user: str) -> "Dict[str, Any]":
    own = os.geteuid() != 0
    if own and user != operator_name():
        return {"sudo": None}
    said = ask(["sudo", "-n", "-l"] + ([] if own else ["-U", user]), 6.0)
    if said.get("timed_out"):
        return {"sudo": None}
    text = said.get("stdout", "")
    level, commands = "none", 0
    for line in text.splitlines():
        rule = re.match(r"\s+\(([^)]*)\)\s*(.*)", line)
        if rule and re.match(r"\s*(?:root|ALL)\b", rule.group(1)):
            commands += 1
            if re.search(r"(?:^|[\s,:])ALL\s*(?:,|$)", rule.group(2)):
                # The last rule that matches is the one that holds (sudoers(5)).
                level = "nopasswd" if "NOPASSWD:" in rule.group(2) else "passwd"
    if own and said.get("rc") and level == "none":
        # `sudo -n -l` ends with an error for one who has rights but would have to give a password.
        return {"sudo": "passwd" if "password is required" in said.get("stderr", "") else "none"}
    return {"sudo": level, "sudo_rules": commands}


def _people() -> "List[Tuple[str, str, int, int, str, str]]":
    return logins()[:64]


def other_accounts() -> "Dict[str, Any]":
    """Accounts that `accounts` does not tell of: those of the system, and those that nobody logs in to."""
    told = {entry[0] for entry in _people()}
    return as_json([{"name": entry[0], "uid": entry[2]} for entry in passwd() if entry[0] not in told])


def accounts() -> "Dict[str, Any]":
    """Login accounts. `keys` counts all usable keys, `forced_command_keys` those among them that only run
    one command. `locked_by` tells `!`, which sshd takes for a locked account, from `*`."""
    shadow: "Dict[str, List[str]]" = {}
    readable = True
    try:
        shadow = {
            line.split(":")[0]: line.split(":")
            for line in read("/etc/shadow", 1 << 20).splitlines()
            if ":" in line
        }
    except OSError:
        readable = False
    patterns, strict = _key_files()
    people = _people()
    rights = (
        side_by_side(_sudo, [entry[0] for entry in people])
        if program("sudo")
        else [{"sudo": "none"}] * len(people)
    )
    found = []
    for entry, sudo in zip(people, rights):
        name, _, uid, _, home, shell = entry
        row: "Dict[str, Any]" = {
            "name": name,
            "uid": uid,
            "shell": shell,
            "home": home,
            "password": None,
            "keys": 0,
            "forced_command_keys": 0,
            "fingerprints": [],
            "bound_fingerprints": [],
        }
        if readable:
            secret = shadow.get(name, ["", "*"])
            row.update(_password(secret))
        row.update(sudo)
        row["groups"] = groups_of(name, entry[3])
        refused, unread = [], False
        row["authorities"] = 0
        for pattern in patterns:
            path = pattern.replace("%%", "%").replace("%h", home).replace("%u", name).replace("%U", str(uid))
            path = path if path.startswith("/") else os.path.join(home, path)
            try:
                keys = _keys(path)
                problem = _modes_refused(path, home, uid)
            except OSError as e:
                unread = unread or e.errno in (errno.EACCES, errno.EPERM)
                continue
            row["key_files"] = [*row.get("key_files", []), path]
            if problem and strict:
                refused.append(problem)  # sshd reads nothing of it
                continue
            row["keys"] += keys.total
            row["forced_command_keys"] += keys.forced
            row["authorities"] += keys.authorities
            row["fingerprints"] += keys.plain
            row["bound_fingerprints"] += keys.bound
        if unread:
            row["keys"] = row["forced_command_keys"] = None
            row["fingerprints"] = row["bound_fingerprints"] = None
        if refused:
            row["keys_refused"] = refused
        found.append(row)
    return as_json(found)


def _password(entry: "List[str]") -> "Dict[str, Any]":
    """passwd -S's three states from shadow(5); expiry in days since 1970."""
    secret = entry[1] if len(entry) > 1 else "*"
    row: "Dict[str, Any]" = {"password": "set"}
    if secret == "":
        row["password"] = "none"
    elif secret[0] in "!*":
        row.update(password="locked", locked_by=secret[0])
    expires = number(entry[7]) if len(entry) > 7 else None
    if expires is not None and expires >= 0:
        row["expired"] = expires * 86400 < time.time()
    if len(entry) > 2 and entry[2] == "0" and row["password"] == "set":
        row["must_change_password"] = True
    return row


def _key_files() -> "Tuple[List[str], bool]":
    """Where sshd looks for keys, and whether modes matter to it (StrictModes)."""
    somebody = "user=root,host=127.0.0.1,addr=127.0.0.1,laddr=127.0.0.1,lport=22"
    text = ask(["sshd", "-T", *sshd_arguments(), "-C", somebody]).get("stdout", "")
    strict = re.search(r"(?m)^strictmodes no$", text) is None
    found = re.search(r"(?m)^authorizedkeysfile (.+)$", text)
    if found:
        return ([] if found.group(1) == "none" else found.group(1).split()), strict
    return [".ssh/authorized_keys", ".ssh/authorized_keys2"], strict  # sshd's default
