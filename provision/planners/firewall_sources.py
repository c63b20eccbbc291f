"""Where traffic may come from: networks, and groups whose addresses the profile carries in firewall_peers."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..profile import presets

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class NoSource(Exception):
    """A name that is neither a network nor a group whose addresses are known; the message says what to do."""


@dataclass(frozen=True)
class Sources:
    """Networks of both families, merged and in order. Nothing in it means that nobody may come."""

    v4: tuple[ipaddress.IPv4Network, ...] = ()
    v6: tuple[ipaddress.IPv6Network, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.v4 or self.v6)

    def holds(self, address: str) -> bool:
        """Whether an address is among them."""
        try:
            ip = ipaddress.ip_address(address.partition("%")[0])
        except ValueError:
            return False
        mapped = getattr(ip, "ipv4_mapped", None)
        ip = mapped or ip
        return any(ip in network for network in (self.v4 if ip.version == 4 else self.v6))

    def within(self, others: Sources) -> Sources:
        """Those that lie inside `others`."""
        return Sources(
            tuple(n for n in self.v4 if any(n.subnet_of(o) for o in others.v4)),
            tuple(n for n in self.v6 if any(n.subnet_of(o) for o in others.v6)),
        )


def network(word: Any) -> Network | None:
    """A network, or a single address as one; None where the word is a name."""
    try:
        return ipaddress.ip_network(str(word), strict=False)
    except ValueError:
        return None


def sources(words: Iterable[Any], peers: Mapping[str, Any]) -> Sources:
    """The networks that some words mean. Raises NoSource.

    A group that is named after a preset is always there; without an inventory it has no hosts.
    """
    found: list[Network] = []
    for word in words:
        if (single := network(word)) is not None:
            found.append(single)
            continue
        members = peers.get(str(word))
        if members is None and str(word) not in presets.names():
            raise NoSource(
                f"{word} is no network, and no group whose addresses are known: give the inventory with -i, "
                f"or `firewall_peers: {{{word}: [NETWORK]}}`."
            )
        for member in members or ():
            if (one := network(member)) is None:
                raise NoSource(f"firewall_peers: {member!r} of {word} is no address and no network.")
            found.append(one)
    return merged(found)


def merged(found: Iterable[Network]) -> Sources:
    networks = list(found)
    v4 = ipaddress.collapse_addresses(n for n in networks if isinstance(n, ipaddress.IPv4Network))
    v6 = ipaddress.collapse_addresses(n for n in networks if isinstance(n, ipaddress.IPv6Network))
    return Sources(tuple(v4), tuple(v6))


def text(network_: Network) -> str:
    """As nft, ufw and people write it: a single address without its prefix length."""
    single = network_.prefixlen == network_.max_prefixlen
    return str(network_.network_address) if single else str(network_)
