"""Services that listen for others: which of them nobody asked for, which are closed, which are stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..facts.known import Absent, Unknown
from .firewall_openings import Opening, ssh_ports, table, tunnels

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..facts import Facts
    from ..facts.firewall import Socket
    from ..profile.model import Profile

PUBLISHER = "docker-proxy"


def from_outside(sockets: Sequence[Socket]) -> tuple[Socket, ...]:
    """Those that another host could reach, the clients of DHCP left out."""
    dhcp = table()["dhcp_clients"]["ports"]
    return tuple(s for s in sockets if not s.is_local and not (s.proto == "udp" and s.port in dhcp))


def unasked(facts: Facts, allowed: Sequence[Opening]) -> tuple[Socket, ...]:
    """Listening sockets that are neither sshd's, nor a tunnel's, nor docker's, nor named by the profile."""
    if isinstance(facts.sockets, Unknown):
        return ()
    asked = {id(socket) for socket, _ in tunnels(facts)}
    ssh = ssh_ports(facts)
    return tuple(
        s
        for s in from_outside(facts.sockets)
        if id(s) not in asked
        and not (s.proto == "tcp" and s.port in ssh)
        and s.program not in ("sshd", PUBLISHER)
        and not any(opening.lets_in(s.proto, s.port) for opening in allowed)
    )


def told(socket: Socket) -> str:
    """`8080/tcp (python3 of python3.11-minimal, jupyter.service)`."""
    of = f" of {socket.package}" if socket.package else ""
    parts = [f"{socket.program or 'program not seen'}{of}", *([socket.unit] if socket.unit else [])]
    return f"{socket.port}/{socket.proto} ({', '.join(parts)})"


def closing(facts: Facts, allowed: Sequence[Opening]) -> tuple[str, ...]:
    """What can be reached now and cannot any more once the role has run, in words for the plan."""
    rules = facts.firewall
    if isinstance(rules, Unknown) or (rules.denies_incoming("ip") and rules.denies_incoming("ip6")):
        return ()
    return tuple(dict.fromkeys(f"close {told(s)}" for s in unasked(facts, allowed)))


def stopping(facts: Facts, profile: Profile) -> tuple[str, ...]:
    """Units that the profile names and that run or start at boot, each with the socket that starts it."""
    running, files = facts.units_running, facts.unit_files
    if isinstance(running, Unknown) or isinstance(files, Unknown):
        return ()
    if isinstance(running, Absent) or isinstance(files, Absent):
        return ()
    named = [str(name) if "." in str(name) else f"{name}.service" for name in profile["firewall_stop"] or ()]
    both = [unit for name in named for unit in (name, f"{name.rpartition('.')[0]}.socket")]
    return tuple(
        unit
        for unit in dict.fromkeys(both)
        if unit in running or files.get(unit) in ("enabled", "enabled-runtime")
    )
