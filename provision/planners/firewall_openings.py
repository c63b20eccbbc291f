"""What has to be let in on one host: sshd's real ports, the profile's, the peers', and tunnels in use."""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..facts.known import Absent, Unknown
from ..yaml_text import read_yaml
from .firewall_sources import Sources, network, sources
from .ssh_refusal import listening_ports

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..facts import Facts
    from ..facts.firewall import Socket
    from ..profile.model import Profile

EPHEMERAL = (32768, 60999)  # Linux's default (ip-sysctl: ip_local_port_range)
SSH_UNITS = ("ssh.socket", "sshd.socket")


@cache
def table() -> dict[str, Any]:
    """The kinds of traffic and programs that this project knows, with their sources."""
    return dict(read_yaml((Path(__file__).parent / "data" / "firewall.yml").read_text(encoding="utf-8")))


@dataclass(frozen=True)
class Opening:
    """Ports `first` to `last` of one protocol; `sources` None lets everybody in."""

    proto: str
    first: int
    last: int
    sources: Sources | None
    why: str

    @property
    def ports(self) -> str:
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"

    def lets_in(self, proto: str, port: int) -> bool:
        return self.proto == proto and self.first <= port <= self.last


def ssh_ports(facts: Facts) -> set[int]:
    """Ports on which sshd, or systemd for it, listens for others now."""
    found: set[int] = set()
    if not isinstance(facts.sockets, Unknown):
        found |= listening_ports(facts.sockets)
    units = facts.units
    if not isinstance(units, Unknown | Absent):
        for name in SSH_UNITS:
            if name in units and units[name].runs:
                ports = (where.rpartition(":")[2] for where in units[name].listen)
                found |= {int(port) for port in ports if port.isdigit()}
    return found


def openings(facts: Facts, profile: Profile) -> tuple[Opening, ...]:
    """All but sshd's. Raises NoSource where a group's addresses are not known."""
    peers = profile["firewall_peers"] or {}
    found = []
    for entry in profile["firewall_allow"] or ():
        first, last = ports_of(entry["port"])
        words = entry.get("from") or ()
        allowed = sources(words, peers) if words else None
        found.append(
            Opening(str(entry.get("proto") or "tcp"), first, last, allowed, str(entry.get("why") or ""))
        )
    if words := profile["firewall_cluster_peers"] or ():
        for kind in profile["firewall_cluster_traffic"] or ():
            found += _traffic(facts, kind, sources(words, peers))
    found += [Opening(s.proto, s.port, s.port, None, why) for s, why in tunnels(facts)]
    return tuple(dict.fromkeys(o for o in found if o.sources is None or o.sources))


def ports_of(value: Any) -> tuple[int, int]:
    """`8000` or `"8000-8010"` as first and last."""
    first, _, last = str(value).partition("-")
    return int(first), int(last or first)


def exempt(profile: Profile) -> Sources:
    """Whose new SSH connections are not counted: peers, and those that the profile names."""
    peers = profile["firewall_peers"] or {}
    words = [*(profile["firewall_cluster_peers"] or ()), *(profile["firewall_ssh_unlimited"] or ())]
    return sources(words, peers)


def operator(facts: Facts) -> str | None:
    """The address that this run logs in from; None where it is the host itself, or link-local."""
    sshd = facts.sshd
    me = None if isinstance(sshd, Unknown | Absent) else sshd.operator
    address = network(me.addr) if me and me.addr else None
    return None if address is None or address.is_loopback or address.is_link_local else str(me and me.addr)


def tunnels(facts: Facts) -> Iterator[tuple[Socket, str]]:
    """Sockets of tunnels. WireGuard's belong to no process; nothing else of the kernel's is taken for one."""
    if isinstance(facts.sockets, Unknown):
        return
    interfaces = () if isinstance(facts.interfaces, Unknown) else facts.interfaces
    wireguard = any(i.kind == "wireguard" for i in interfaces)
    for socket in facts.sockets:
        if socket.is_local:
            continue
        if socket.program in table()["tunnels"]["programs"]:
            yield socket, f"{socket.program}, which may be the way in"
        elif wireguard and socket.proto == "udp" and socket.program is None and socket.pid is None:
            yield socket, "WireGuard, which may be the way in"


def guest_bridges(facts: Facts) -> tuple[str, ...]:
    """Name patterns of the bridges of virtual machines that this host has."""
    interfaces = () if isinstance(facts.interfaces, Unknown) else facts.interfaces
    return tuple(
        f"{prefix}*"
        for prefix in table()["guest_bridges"]["prefixes"]
        if any(i.name.startswith(prefix) for i in interfaces)
    )


def never_stopped(unit: str) -> bool:
    name = unit.rpartition(".")[0] or unit
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in table()["never_stopped"]["units"])


def _traffic(facts: Facts, kind: str, allowed: Sources) -> Iterator[Opening]:
    known = table()["traffic"][kind]
    for entry in known["ports"]:
        first, last = _ephemeral(facts) if entry["port"] == "ephemeral" else ports_of(entry["port"])
        yield Opening(entry["proto"], first, last, allowed, f"peers: {known['why']}")


def _ephemeral(facts: Facts) -> tuple[int, int]:
    told = {} if isinstance(facts.sysctl, Unknown) else facts.sysctl
    words = str(told.get("net.ipv4.ip_local_port_range") or "").split()
    return (
        (int(words[0]), int(words[1])) if len(words) == 2 and all(w.isdigit() for w in words) else EPHEMERAL
    )
