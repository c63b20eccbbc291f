"""The variable ssh_hardening_admins: names of accounts, and public keys as text or from files."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

VARIABLE = "ssh_hardening_admins"
# What useradd takes on every distribution (useradd(8), "Caveats"), and not longer than utmp holds.
NAME = re.compile(r"[a-z_][a-z0-9_-]{0,31}")
# DSA is left out: OpenSSH refuses it since 7.0 and has dropped it since (https://www.openssh.com/txt/release-7.0).
KINDS = frozenset(
    {
        "ssh-ed25519",
        "ssh-rsa",
        "ecdsa-sha2-nistp256",
        "ecdsa-sha2-nistp384",
        "ecdsa-sha2-nistp521",
        "sk-ssh-ed25519@openssh.com",
        "sk-ecdsa-sha2-nistp256@openssh.com",
    }
)


def wrong(value: Any) -> str | None:
    """What is wrong with a value of the variable, files that it names included; None where it is right."""
    if not isinstance(value, list | tuple):
        return "must be a list of {name, keys, sudo}"
    names: set[str] = set()
    for entry in value:
        if problem := _wrong_entry(entry):
            return problem
        if entry["name"] in names:
            return f"{entry['name']} is in the list twice"
        names.add(entry["name"])
    return None


def _wrong_entry(entry: Any) -> str | None:
    if not isinstance(entry, Mapping):
        return "must be a list of {name, keys, sudo}"
    if extra := sorted(set(map(str, entry)) - {"name", "keys", "sudo"}):
        return f"{extra[0]} is unknown; an administrator has name, keys and sudo"
    name, keys = entry.get("name"), entry.get("keys")
    if not isinstance(name, str) or not NAME.fullmatch(name):
        return f"{name!r} is no name for an account: lower-case letters, digits, - and _, at most 32"
    if name == "root":
        return "root needs no place in the list; it is about administrators beside root"
    if not isinstance(entry.get("sudo", True), bool):
        return f"{name}: sudo must be true or false"
    if not isinstance(keys, list | tuple) or not keys:
        return f"{name} has no key; without one nobody gets in as {name}"
    try:
        for key in keys:
            _lines(key)
    except ValueError as e:
        return f"{name}: {e}"
    return None


def expanded(value: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The list with every key as one line of text and nothing left to default.

    Raises ValueError with what wrong() would tell.
    """
    if problem := wrong(value):
        raise ValueError(problem)
    return [
        {
            "name": entry["name"],
            "keys": list(dict.fromkeys(line for key in entry["keys"] for line in _lines(key))),
            "sudo": entry.get("sudo", True),
        }
        for entry in value
    ]


def _lines(key: Any) -> list[str]:
    """The public keys that one entry stands for. Raises ValueError where it stands for none."""
    if not isinstance(key, str) or not key.strip():
        raise ValueError("a key is the text of a public key, or the path of its file")
    if "PRIVATE KEY" in key:
        raise ValueError("that is a private key; the public one is wanted, as in id_ed25519.pub")
    if not key.startswith(("/", "~", "./", "../")) and len(key.split()) > 1:
        return [public_key(key)]
    path = Path(key).expanduser()
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as e:
        raise ValueError(f"{path}: {e.strerror}") from e
    except UnicodeDecodeError as e:
        raise ValueError(f"{path} is no public key") from e
    if "PRIVATE KEY" in text:
        raise ValueError(f"{path} is a private key; the public one is wanted, mostly {path.name}.pub")
    lines = [line for line in map(str.strip, text.splitlines()) if line and not line.startswith("#")]
    if not lines:
        raise ValueError(f"{path} holds no key")
    try:
        return [public_key(line) for line in lines]
    except ValueError as e:
        raise ValueError(f"{path}: {e}") from e


def public_key(text: str) -> str:
    """One plain public key as one line: kind, key, comment. Raises ValueError for anything else.

    A line with options (`command=`, `from=`, `cert-authority`) or a certificate is none: an administrator
    comes in from anywhere to do anything, and a certificate is trusted through its authority.
    """
    kind, _, rest = text.strip().partition(" ")
    blob, _, comment = rest.strip().partition(" ")
    if "\n" in text.strip():
        raise ValueError("one line is one key")
    if "-cert-v0" in kind:
        raise ValueError("that is a certificate; name its authority in sshd's TrustedUserCAKeys instead")
    if kind not in KINDS:
        if any(f"{known} " in text for known in KINDS):
            raise ValueError("options before a key are not taken; an administrator's key has none")
        raise ValueError(f"{kind[:40]!r} is no kind of public key that OpenSSH takes")
    try:
        raw = base64.b64decode(blob, validate=True)
    except binascii.Error:
        raw = b""
    # A key begins with the length and the name of its kind (RFC 4253, section 6.6).
    if not raw.startswith(len(kind).to_bytes(4, "big") + kind.encode()) or len(raw) < 48:
        raise ValueError(f"the key after {kind} is damaged or cut")
    words = " ".join(comment.split())
    return f"{kind} {blob}{f' {words}' if words else ''}"


def fingerprint(key: str) -> str:
    """OpenSSH's SHA256 fingerprint of a key's line."""
    digest = hashlib.sha256(base64.b64decode(key.split()[1])).digest()
    return "SHA256:" + base64.b64encode(digest).decode().rstrip("=")
