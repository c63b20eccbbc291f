"""Addresses of the groups that the firewall's variables name, from the inventory that the run was given.

A host's address is its `ansible_host`, or its name, looked up here where it is no address. What the profile
itself says in `firewall_peers` comes first: peers may talk over another network than they are reached by.
"""

from __future__ import annotations

import difflib
import ipaddress
import socket
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from ..errors import Usage
from . import presets

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .model import Profile

LISTS = ("firewall_ssh_from", "firewall_ssh_unlimited", "firewall_cluster_peers")


class Members(Protocol):
    """What knows an inventory's hosts."""

    def names(self) -> tuple[str, ...]:
        """Every group and host."""

    def members(self, name: str) -> tuple[tuple[str, Mapping[str, Any]], ...] | None:
        """Each host of a group, or the host, of that name with its variables; None where there is neither."""


def with_peers(profile: Profile, inventory: Members | None, *, host: str | None = None) -> Profile:
    """The profile with the addresses of every group that its firewall variables name.

    Groups that are named after presets are always there, and may have no hosts. Raises Usage for a name that
    means nothing, and for a host whose address cannot be found.
    """
    told: dict[str, Any] = dict(profile["firewall_peers"] or {})
    for name in dict.fromkeys(_named(profile.variables)):
        if name in told:
            continue
        found = inventory.members(name) if inventory else None
        if found is None:
            if name in presets.names():
                continue
            near = difflib.get_close_matches(name, [*(inventory.names() if inventory else ()), *told], n=1)
            raise Usage(
                f"the firewall's variables name {name}, which is no network and no group that is known here"
                + (f"; did you mean {near[0]}?" if near else ""),
                host=host,
                do=f"give the inventory with -i, or `--set 'firewall_peers={{{name}: [NETWORK]}}'`",
            )
        told[name] = sorted({ip for member, values in found for ip in _addresses(member, values)})
    return replace(profile, variables={**profile.variables, "firewall_peers": told})


def _named(variables: Mapping[str, Any]) -> Iterator[str]:
    """Names of groups among the words that the firewall's variables use."""
    words = [word for entry in variables["firewall_allow"] or () for word in entry.get("from") or ()]
    words += [word for variable in LISTS for word in variables[variable] or ()]
    for word in map(str, words):
        try:
            ipaddress.ip_network(word, strict=False)
        except ValueError:
            yield word


def _addresses(name: str, variables: Mapping[str, Any]) -> tuple[str, ...]:
    where = str(variables.get("ansible_host") or variables.get("ansible_ssh_host") or name)
    try:
        return (str(ipaddress.ip_address(where)),)
    except ValueError:
        pass
    try:
        found = socket.getaddrinfo(where, None, type=socket.SOCK_STREAM)
    except OSError as e:
        raise Usage(
            f"the address of {name}, whom the firewall lets in, cannot be found: {where}: {e.strerror}",
            do="give its ansible_host as an address, or the group's addresses in firewall_peers",
        ) from e
    return tuple({str(entry[4][0]) for entry in found})
