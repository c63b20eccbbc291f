"""Whom sshd lets try at all: AllowUsers, DenyUsers, AllowGroups and DenyGroups (sshd_config(5))."""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def shut_out(
    options: Mapping[str, tuple[str, ...]], user: str, addr: str | None, groups: tuple[str, ...] | None
) -> str | None:
    """Why sshd would refuse `user` from `addr` whatever the key; None where nothing here does.

    `options` are those of `sshd -T`. `groups` None means that they are not known; group rules are then
    taken to let the user in, and the login from outside decides.
    """
    if rule := next((p for p in _words(options, "denyusers") if _user_matches(p, user, addr)), None):
        return f"DenyUsers {rule}"
    allowed = _words(options, "allowusers")
    if allowed and not any(_user_matches(pattern, user, addr) for pattern in allowed):
        return f"AllowUsers {' '.join(allowed)}"
    if groups is None:
        return None
    if rule := next((p for p in _words(options, "denygroups") if any(_like(p, g) for g in groups)), None):
        return f"DenyGroups {rule}"
    allowed = _words(options, "allowgroups")
    if allowed and not any(_like(pattern, group) for pattern in allowed for group in groups):
        return f"AllowGroups {' '.join(allowed)}"
    return None


def _words(options: Mapping[str, tuple[str, ...]], keyword: str) -> list[str]:
    return [word for value in options.get(keyword, ()) for word in value.split()]


def _user_matches(pattern: str, user: str, addr: str | None) -> bool:
    name, at, host = pattern.rpartition("@")
    if not at:
        return _like(pattern, user)
    return _like(name, user) and (addr is None or _address_matches(host, addr))


def _address_matches(pattern: str, addr: str) -> bool:
    if "/" in pattern:
        try:
            return ipaddress.ip_address(addr.partition("%")[0]) in ipaddress.ip_network(pattern, strict=False)
        except ValueError:
            return False
    return _like(pattern, addr)


def _like(pattern: str, text: str) -> bool:
    """OpenSSH's wildcards: `*` and `?` only, so that `[` in a name is just a character."""
    made: Iterable[str] = ({"*": ".*", "?": "."}.get(c, re.escape(c)) for c in pattern)
    return re.fullmatch("".join(made), text) is not None
