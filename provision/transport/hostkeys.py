"""Host keys: the fingerprint that a host offers, the one that is known, and keeping a new one."""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from . import child
from .options import destination, options

if TYPE_CHECKING:
    from .target import Target

# What a host may offer, the best first; one connection shows one kind only (ssh_config(5),
# HostKeyAlgorithms).
_KINDS = (
    ("ssh-ed25519",),
    ("ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521"),
    ("rsa-sha2-512", "rsa-sha2-256"),
)


@dataclass(frozen=True)
class HostKey:
    """A host's public key. `line` is its line of known_hosts, under the name that OpenSSH gives the host."""

    kind: str
    fingerprint: str
    line: str


def fingerprint(blob: str) -> str:
    """OpenSSH's SHA256 fingerprint of a key in base64. Raises ValueError where it is no base64."""
    try:
        digest = hashlib.sha256(base64.b64decode(blob, validate=True)).digest()
    except binascii.Error as e:
        raise ValueError(f"not a key: {blob[:20]}") from e
    return "SHA256:" + base64.b64encode(digest).decode().rstrip("=")


def offered(target: Target, algorithms: str = "") -> HostKey | None:
    """The key that the host offers now, seen on a connection of its own that logs nobody in.

    It goes the way of every other connection (ssh_config, ProxyJump), which ssh-keyscan does not.
    None where no key was seen: the host is not reached, or has no key of these `algorithms`.
    """
    with tempfile.TemporaryDirectory(prefix="gpu-") as folder:
        known = Path(folder) / "known_hosts"
        first = [
            "StrictHostKeyChecking=accept-new",
            f"UserKnownHostsFile={known}",
            "GlobalKnownHostsFile=/dev/null",
            "KnownHostsCommand=none",
            "VerifyHostKeyDNS=no",
            "HashKnownHosts=no",
            "UpdateHostKeys=no",
            "CheckHostIP=no",
            "PreferredAuthentications=none",
            "PubkeyAuthentication=no",
            "ControlPath=none",
            "ControlMaster=no",
        ]
        if algorithms:
            first.append(f"HostKeyAlgorithms={algorithms}")
        arguments = [part for setting in first for part in ("-o", setting)]
        try:
            child.run(["ssh", *arguments, *options(target), *destination(target), "true"], timeout=40)
            lines = known.read_text().splitlines()
        except (child.TimedOut, OSError):
            return None
    return next((key for key in map(_key, lines) if key), None)


def with_fingerprint(target: Target, wanted: str) -> tuple[HostKey | None, tuple[HostKey, ...]]:
    """The host's key that has the fingerprint `wanted`, and all keys that were seen on the way."""
    seen: list[HostKey] = []
    for algorithms in ("", *(",".join(kinds) for kinds in _KINDS)):
        key = offered(target, algorithms)
        if key is not None and key not in seen:
            seen.append(key)
            if key.fingerprint == wanted:
                return key, tuple(seen)
        if key is None and not algorithms:
            break
    return None, tuple(seen)


def recorded(target: Target, key: HostKey) -> tuple[str, str] | None:
    """Another key of this kind that known_hosts has for the host: its fingerprint, and where it stands."""
    path = known_hosts(target)
    name = key.line.split()[0]
    said = child.run(["ssh-keygen", "-F", name, "-f", str(path)], timeout=20)
    number = 0
    for line in said.out.splitlines():
        found = re.match(r"# Host .* found: line (\d+)", line)
        number = int(found[1]) if found else number
        known = _key(line)
        if known and known.kind == key.kind and known.fingerprint != key.fingerprint:
            return known.fingerprint, f"line {number} of {path}"
    return None


def known_hosts(target: Target) -> Path:
    """The file in which OpenSSH keeps this host's key."""
    said = child.run(["ssh", "-G", *options(target), *destination(target)], timeout=20)
    found = re.search(r"(?m)^userknownhostsfile (\S+)", said.out)
    return Path(found[1] if found else "~/.ssh/known_hosts").expanduser()


def keep(target: Target, key: HostKey) -> Path:
    """Add the key to known_hosts where that line is not there yet. Existing lines stay as they are."""
    path = known_hosts(target)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    before = path.read_text() if path.exists() else ""
    if key.line not in before.splitlines():
        # One write to a file opened for appending: two runs at once do not mix their lines.
        text = ("" if before in ("",) or before.endswith("\n") else "\n") + key.line + "\n"
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, text.encode())
        finally:
            os.close(descriptor)
    return path


def at_line(path: Path, number: int) -> str | None:
    """Fingerprint of the key in a line of known_hosts (the first is 1); None where there is none."""
    try:
        key = _key(path.read_text().splitlines()[number - 1])
    except (OSError, IndexError):
        return None
    return key.fingerprint if key else None


def _key(line: str) -> HostKey | None:
    part = line.split()
    if part and part[0].startswith("@"):
        part = part[1:]
    if len(part) < 3 or part[0].startswith("#"):
        return None
    try:
        return HostKey(part[1], fingerprint(part[2]), line.strip())
    except ValueError:
        return None
