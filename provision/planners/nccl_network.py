"""Which of a host's interfaces NCCL is to use, with the reason for each that it is not."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..facts.known import Unknown
from .nccl_names import between_hosts
from .wanted import Why

if TYPE_CHECKING:
    from ..facts import Facts
    from ..facts.network import Interface
    from ..profile.model import Profile

NCCL_DOCS = "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html"


@dataclass(frozen=True)
class Chosen:
    """Settings with their reasons; `refused` says why there can be none, and what to do."""

    values: dict[str, str]
    why: tuple[Why, ...] = ()
    refused: str | None = None


def unfit(interface: Interface) -> str | None:
    """Why NCCL cannot reach another host over an interface; None where it can."""
    if interface.kind == "loopback" or interface.name == "lo":
        return "is the loopback"
    if (what := between_hosts(interface.name)) is not None:
        return f"is {what}"
    if not interface.up:
        return "is down or has no carrier"
    if interface.master is not None:
        return f"is a member of {interface.master}"
    if not interface.routable:
        return "has no address"
    return None


def socket_interface(facts: Facts, asked: str, peers: tuple[str, ...] = ()) -> Chosen:
    """NCCL_SOCKET_IFNAME by exact name: the interface that was asked for, in whose network most peers are, or
    that carries the default route.

    Prefixes match too much (`eth1` is also eth10) and NCCL's own choice differs with the order of
    interfaces, so the name is always exact (`=NAME`).
    """
    interfaces = facts.interfaces
    if isinstance(interfaces, Unknown):
        return Chosen({}, refused=f"the host's interfaces are not known: {interfaces.reason}")
    reasons = {interface.name: unfit(interface) for interface in interfaces}
    fit = [name for name, reason in reasons.items() if reason is None]
    offer = f"Fit are: {', '.join(fit)}." if fit else f"No interface here is fit: {_reasons(reasons)}."
    if asked != "auto":
        if asked not in reasons:
            return Chosen({}, refused=f"nccl_interface is {asked}, which this host does not have. {offer}")
        if (reason := reasons[asked]) is not None:
            return Chosen({}, refused=f"nccl_interface is {asked}, which {reason}. {offer}")
        return _named(asked, "nccl_interface names it")
    beside = {i.name: sum(1 for peer in peers if reaches(i, peer)) for i in interfaces if i.name in fit}
    if beside and (most := max(beside.values())):
        best = [name for name, count in beside.items() if count == most]
        if len(best) == 1:
            return _named(best[0], f"its network has {most} of {len(peers)} addresses of the cluster")
    routes = facts.default_routes
    carriers = () if isinstance(routes, Unknown) else tuple(r.interface for r in routes if r.interface in fit)
    if carriers:
        return _named(carriers[0], "it carries the default route")
    if len(fit) == 1:
        return _named(fit[0], "it is the only interface with an address that another host can reach")
    if not fit:
        return Chosen({}, refused=f"NCCL has no interface to talk to other hosts. {offer}")
    return Chosen({}, refused=f"no default route tells NCCL's interface: set nccl_interface. {offer}")


def peers(profile: Profile) -> tuple[str, ...]:
    """Addresses of the hosts that compute together, as the firewall lets them in."""
    known: dict[str, list[str]] = profile["firewall_peers"] or {}
    found: list[str] = []
    for word in profile["firewall_cluster_peers"] or ():
        found += known.get(word, [str(word)])
    return tuple(dict.fromkeys(found))


def reaches(interface: Interface, address: str) -> bool:
    """Whether an address, or a whole network, of another host is in a network of the interface."""
    try:
        wanted = ipaddress.ip_network(address, strict=False)
        own = [ipaddress.ip_interface(f"{a.ip}/{a.prefix}") for a in interface.routable]
    except ValueError:
        return False
    if any(wanted.prefixlen == wanted.max_prefixlen and one.ip == wanted.network_address for one in own):
        return False
    networks = [one.network for one in own if one.version == wanted.version]
    return any(wanted.network_address in network for network in networks)


def _named(name: str, reason: str) -> Chosen:
    why = Why("NCCL_SOCKET_IFNAME", f"{name}: {reason}", NCCL_DOCS)
    return Chosen({"NCCL_SOCKET_IFNAME": f"={name}"}, (why,))


def _reasons(reasons: dict[str, str | None]) -> str:
    return ", ".join(f"{name} {reason}" for name, reason in reasons.items() if reason)
