"""Which of a host's interfaces and RDMA ports NCCL is to use, with the reason for each that it is not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..facts.known import Unknown
from .nccl_names import between_hosts, unread
from .nccl_release import nccl_release
from .wanted import Why

if TYPE_CHECKING:
    from ..facts import Facts
    from ..facts.network import Interface, RdmaPort

NCCL_DOCS = "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html"
# NCCL warns of this itself: "use only one link type using NCCL_IB_HCA" (NVIDIA/nccl, transport/net_ib).
ONE_LINK_TYPE = "https://github.com/NVIDIA/nccl/tree/v2.30/src/transport/net_ib"


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


def socket_interface(facts: Facts, asked: str) -> Chosen:
    """NCCL_SOCKET_IFNAME by exact name: the interface that was asked for, or that carries the default route.

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
    routes = facts.default_routes
    carriers = () if isinstance(routes, Unknown) else tuple(r.interface for r in routes if r.interface in fit)
    if carriers:
        return _named(carriers[0], "it carries the default route")
    if len(fit) == 1:
        return _named(fit[0], "it is the only interface with an address that another host can reach")
    if not fit:
        return Chosen({}, refused=f"NCCL has no interface to talk to other hosts. {offer}")
    return Chosen({}, refused=f"no default route tells NCCL's interface: set nccl_interface. {offer}")


def _named(name: str, reason: str) -> Chosen:
    why = Why("NCCL_SOCKET_IFNAME", f"{name}: {reason}", NCCL_DOCS)
    return Chosen({"NCCL_SOCKET_IFNAME": f"={name}"}, (why,))


def _reasons(reasons: dict[str, str | None]) -> str:
    return ", ".join(f"{name} {reason}" for name, reason in reasons.items() if reason)


def rdma_ports(facts: Facts) -> Chosen:
    """NCCL_IB_HCA by exact device and port; NCCL_IB_DISABLE only where the host has no RDMA port at all."""
    ports = facts.rdma
    if isinstance(ports, Unknown):
        return Chosen({}, (Why("NCCL_IB_HCA", f"not set, as the RDMA ports are not known: {ports.reason}"),))
    excluded = {port: reason for port in ports if (reason := _unfit_port(port)) is not None}
    if all(port.switch_management for port in ports):
        why = Why("NCCL_IB_DISABLE", "the host has no RDMA port, so NCCL need not look for one", NCCL_DOCS)
        return Chosen({"NCCL_IB_DISABLE": "1"}, (why, *_told(excluded)))
    fit = [port for port in ports if port not in excluded]
    if any(port.link_layer == "InfiniBand" for port in fit):
        ethernet = [port for port in fit if port.link_layer != "InfiniBand"]
        excluded |= dict.fromkeys(ethernet, "is Ethernet, and NCCL uses one link type at a time")
        fit = [port for port in fit if port not in ethernet]
    rates = [port.rate_gbit for port in fit if port.rate_gbit is not None]
    if rates and len(rates) == len(fit):
        best = max(rates)
        slower = [port for port in fit if port.rate_gbit != best]
        excluded |= {port: f"has {port.rate_gbit:g} Gbit/s and the fastest have {best:g}" for port in slower}
        fit = [port for port in fit if port not in slower]
    if not fit:
        return Chosen({}, (Why("NCCL_IB_HCA", "not set, as no RDMA port is fit"), *_told(excluded)))
    value = "=" + ",".join(f"{port.device}:{port.port}" for port in fit)
    says = f"{len(fit)} active RDMA ports, by exact name (mlx5_1 matches mlx5_10 too)"
    why = Why("NCCL_IB_HCA", says, NCCL_DOCS)
    address = _gid_index(facts, fit)
    return Chosen({"NCCL_IB_HCA": value, **address.values}, (why, *address.why, *_told(excluded)))


def _gid_index(facts: Facts, ports: list[RdmaPort]) -> Chosen:
    """NCCL_IB_GID_INDEX, only for an NCCL on RoCE that does not find the entry itself.

    From 2.21 on NCCL picks a routable RoCE v2 entry of each port's table by itself (NCCL_IB_ROCE_VERSION_NUM
    came with that); before, it takes entry 0, which is RoCE v1 and link-local. One index serves all ports.
    """
    release = nccl_release(facts)
    if release is None or ports[0].link_layer == "InfiniBand":
        return Chosen({})
    if unread("NCCL_IB_ROCE_VERSION_NUM", release) is None:
        return Chosen({})
    common = set.intersection(
        *({index for index, gid, kind in p.gids if _routable(gid, kind)} for p in ports)
    )
    if not common:
        says = (
            f"not set, though NCCL {release} needs it: no entry is a RoCE v2 address over IPv4 on all ports"
        )
        return Chosen({}, (Why("NCCL_IB_GID_INDEX", says, NCCL_DOCS),))
    says = f"NCCL {release} does not look for the RoCE v2 address over IPv4 itself"
    return Chosen({"NCCL_IB_GID_INDEX": str(min(common))}, (Why("NCCL_IB_GID_INDEX", says, NCCL_DOCS),))


def _routable(gid: str, kind: str) -> bool:
    """An IPv4 address in IPv6 form (::ffff:a.b.c.d), as the kernel prints it, of RoCE version 2."""
    return "v2" in kind and gid.lower().startswith("0000:0000:0000:0000:0000:ffff:")


def _unfit_port(port: RdmaPort) -> str | None:
    if port.switch_management:
        return "belongs to an NVSwitch's management"
    if not port.active:
        return f"is {port.state}"
    if port.link_layer not in ("InfiniBand", "Ethernet"):
        return f"has link layer {port.link_layer or 'unknown'}"
    if port.link_layer == "Ethernet" and not any("RoCE" in kind for _, _, kind in port.gids):
        return "offers no RoCE address"
    return None


def _told(excluded: dict[RdmaPort, str]) -> tuple[Why, ...]:
    told = []
    for port, reason in excluded.items():
        source = ONE_LINK_TYPE if "link type" in reason else ""
        told.append(Why("NCCL_IB_HCA", f"{port.device}:{port.port} is left out: it {reason}", source))
    return tuple(told)
