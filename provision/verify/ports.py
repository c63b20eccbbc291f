"""Which ports of a host are tried from outside, and how each has to look from one address."""

from __future__ import annotations

import fnmatch
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..facts.known import Unknown
from ..planners import firewall_ufw as ufw
from ..planners.firewall_openings import openings, ssh_ports
from ..planners.firewall_refusal import uses_ufw

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..facts import Facts
    from ..facts.firewall import Socket
    from ..planners.firewall_openings import Opening
    from ..profile.model import Profile

# Below the ports that Linux gives to outgoing connections, above those that services are known by.
SPARE = range(20000, 30000)
SPARES = 3
# Linux gives what listens at :: the connections of IPv4, too (ipv6(7), IPV6_V6ONLY).
EVERYWHERE = {"0.0.0.0": frozenset({4}), "::": frozenset({4, 6}), "*": frozenset({4, 6})}


@dataclass(frozen=True)
class Ports:
    """`named` by the profile, one port of each entry; `spare` are ports that nobody asked for.

    Both as `tcp:8000`. `served` are those of `named` on which a service of the host's own listens at every
    address, with the families (4, 6) over which it does.
    """

    named: tuple[str, ...]
    spare: tuple[str, ...]
    served: Mapping[str, frozenset[int]]
    openings: tuple[Opening, ...]

    @property
    def unserved(self) -> tuple[str, ...]:
        return tuple(port for port in (*self.named, *self.spare) if port not in self.served)

    def open_for(self, address: str) -> tuple[str, ...]:
        """Those of `named` that have to be reached from this address."""
        return tuple(port for port in self.named if self._lets_in(port, address))

    def shut_for(self, address: str) -> tuple[str, ...]:
        """Those that must not be reached from this address: nobody's, and those of others."""
        return (*self.spare, *(port for port in self.named if not self._lets_in(port, address)))

    def _lets_in(self, port: str, address: str) -> bool:
        proto, _, number = port.partition(":")
        return any(
            o.lets_in(proto, int(number)) and (o.sources is None or o.sources.holds(address))
            for o in self.openings
        )


def ports(facts: Facts, profile: Profile) -> Ports:
    """Raises NoSource where a group's addresses are not known."""
    allowed = openings(facts, profile)
    sockets = () if isinstance(facts.sockets, Unknown) else facts.sockets
    used = {f"{s.proto}:{s.port}" for s in sockets} | {f"tcp:{port}" for port in ssh_ports(facts)}
    served = _served(sockets)
    named = dict.fromkeys(_one_of(opening, used, served) for opening in allowed)
    free = [
        port for port in SPARE
        if not any(o.lets_in(proto, port) for o in allowed for proto in ("tcp", "udp"))
        and not {f"tcp:{port}", f"udp:{port}"} & used
        and not any(_theirs(facts, proto, port, None) for proto in ("tcp", "udp"))
    ]  # fmt: skip
    spare = random.sample(free, min(SPARES, len(free)))
    return Ports(
        tuple(port for port in named if port),
        tuple(f"{proto}:{port}" for port in spare for proto in ("tcp", "udp")),
        {port: families for port, families in served.items() if port in named},
        allowed,
    )


def exempted(facts: Facts, profile: Profile, address: str, ours: str) -> str | None:
    """Why nothing at all is refused to us at this address of the host, in words; None where it is."""
    if ours == address:
        return "this machine is the host itself"
    interfaces = () if isinstance(facts.interfaces, Unknown) else facts.interfaces
    here = next((i.name for i in interfaces for a in i.addresses if a.ip == address.partition("%")[0]), None)
    for pattern in profile["firewall_interfaces"] or ():
        if here is not None and fnmatch.fnmatchcase(here, str(pattern)):
            return f"this machine comes in by {here}, from which firewall_interfaces lets everything in"
    if _theirs(facts, "tcp", None, ours):
        return f"a rule of others in ufw lets {ours} in everywhere"
    return None


def _served(sockets: Sequence[Socket]) -> dict[str, frozenset[int]]:
    """A service that answers a datagram which means nothing to it is not to be had, so TCP alone."""
    found: dict[str, frozenset[int]] = {}
    for one in sockets:
        if one.proto == "tcp" and one.address in EVERYWHERE:
            port = f"tcp:{one.port}"
            found[port] = found.get(port, frozenset()) | EVERYWHERE[one.address]
    return found


def _one_of(opening: Opening, used: set[str], served: Mapping[str, object]) -> str | None:
    """A port of an entry: one that is served; else any that is free."""
    every = [f"{opening.proto}:{port}" for port in range(opening.first, opening.last + 1)]
    free: Sequence[str] = [port for port in every if port not in used]
    return next((port for port in every if port in served), random.choice(free) if free else None)


def _theirs(facts: Facts, proto: str, port: int | None, ours: str | None) -> bool:
    """Whether a rule that others gave ufw names this port or, of `port` None, lets us in at every port."""
    if not uses_ufw(facts):
        return False
    texts = [facts.file(path) for path in ufw.RULES.values()]
    rules = [rule for text in texts if isinstance(text, str) for rule in ufw.admitted(text)]
    if port is not None:
        return any(rule.names(proto, port) for rule in rules)
    return any(rule.every_port and ours is not None and rule.holds(ours) for rule in rules)
