"""Which users and addresses to ask `sshd -T` about."""

import re
import socket

from .people import logins, members, operator_address, operator_name
from .reading import number

MYPY = False
if MYPY:
    from typing import Any, Dict, List, Optional


def _representative(pattern: str) -> "Optional[str]":
    """One address or name that a pattern of a Match line covers."""
    if pattern.startswith("!"):
        return None
    if "/" in pattern:
        network, _, bits = pattern.partition("/")
        family = socket.AF_INET6 if ":" in network else socket.AF_INET
        try:
            packed = bytearray(socket.inet_pton(family, network))
        except OSError:
            return None
        if number(bits) != len(packed) * 8:
            packed[-1] |= 1
        return socket.inet_ntop(family, bytes(packed))
    text = pattern.replace("*", "1").replace("?", "1")
    if re.match(r"[\d.]+$", text) and text.count(".") in (1, 2):
        text += ".1" * (3 - text.count("."))  # `10.*` stands for whole addresses
    return text


def _match_criteria(files: "List[Dict[str, Any]]") -> "Dict[str, List[str]]":
    criteria: "Dict[str, List[str]]" = {}
    for entry in files:
        for line in entry.get("text", "").splitlines():
            found = re.match(r"(?i)\s*match\s+(.+)", line)
            words = re.findall(r"\"[^\"]*\"|[^\s=]+", found.group(1)) if found else []
            for key, value in zip(words, words[1:]):
                if key.lower() in (
                    "user",
                    "group",
                    "host",
                    "address",
                    "localaddress",
                    "localport",
                    "rdomain",
                ):
                    criteria.setdefault(key.lower(), []).extend(value.strip('"').split(","))
    return criteria


def sshd_cases(files: "List[Dict[str, Any]]") -> "List[Dict[str, str]]":
    """The users and addresses to ask about: exceptions hide in Match blocks, so each block gets one."""
    here = operator_address() or "127.0.0.1"
    stranger = "gpu-provision-nobody"
    criteria = _match_criteria(files)
    people = [entry[0] for entry in logins() if entry[0] != "root"]
    users = ["root", operator_name(), *people[:12]]
    users += [name for pattern in criteria.get("user", []) for name in [_representative(pattern)] if name]
    for group in criteria.get("group", []):
        users += members(group)[:2]
    users.append(stranger)
    outside = ["127.0.0.1", "198.51.100.77", "2001:db8::77"]  # the last two are documentation addresses
    blocks = [a for pattern in criteria.get("address", []) for a in [_representative(pattern)] if a]
    hosts = [name for pattern in criteria.get("host", []) for name in [_representative(pattern)] if name]
    local = [a for pattern in criteria.get("localaddress", []) for a in [_representative(pattern)] if a]
    ports = [text for text in criteria.get("localport", []) if text.isdigit()]
    cases = [{"user": user, "addr": here} for user in users]
    cases += [{"user": user, "addr": addr} for addr in outside for user in ("root", stranger)]
    # Blocks may name a user and an address together.
    some = ["root", operator_name(), stranger] + [
        name for name in users[2:-1] if name in criteria.get("user", [])
    ]
    cases += [{"user": user, "addr": addr} for addr in blocks[:16] for user in some[:8]]
    cases += [{"user": user, "addr": here, "host": name} for name in hosts[:8] for user in ("root", stranger)]
    cases += [{"user": user, "addr": here, "laddr": a} for a in local[:4] for user in ("root", stranger)]
    cases += [
        {"user": user, "addr": here, "lport": port} for port in ports[:4] for user in ("root", stranger)
    ]
    if "rdomain" in criteria:
        cases = [dict(case, rdomain="none") for case in cases]
    unique: "List[Dict[str, str]]" = []
    for case in cases:
        if case not in unique:
            unique.append(case)
    return unique[:120]
