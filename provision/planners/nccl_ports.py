"""Which of a host's RDMA ports NCCL is to use, with the reason for each that it is not."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ..facts.known import Unknown
from .nccl_names import unread
from .nccl_network import NCCL_DOCS, Chosen, reaches
from .nccl_release import nccl_release
from .wanted import Why

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..facts import Facts
    from ..facts.network import RdmaPort

# NCCL warns of this itself: "use only one link type using NCCL_IB_HCA" (NVIDIA/nccl, transport/net_ib).
ONE_LINK_TYPE = "https://github.com/NVIDIA/nccl/tree/v2.30/src/transport/net_ib"
# What mounts over a network of its own on training nodes; the kernel's names.
_NETWORK_FILES = ("nfs", "nfs4", "lustre", "beegfs", "gpfs", "ceph", "wekafs")


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
    for kind in (_virtual, _storage(facts)):
        told = {port: reason for port in fit if (reason := kind(port)) is not None}
        # Where all ports are of that kind, they are what the host has.
        if len(told) < len(fit):
            excluded |= told
            fit = [port for port in fit if port not in told]
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


def _virtual(port: RdmaPort) -> str | None:
    """Virtual functions are for guests; where the host has the cards themselves, those are its own."""
    return "is a virtual function of a card that is here as well" if port.virtual_function else None


def _storage(facts: Facts) -> Callable[[RdmaPort], str | None]:
    """Tells a port over whose interface a network file system is mounted."""
    mounts, interfaces = facts.mounts, facts.interfaces
    used: dict[str, str] = {}
    for mount in () if isinstance(mounts, Unknown) else mounts:
        server = _server(mount.source) if mount.fstype in _NETWORK_FILES else None
        for interface in () if isinstance(interfaces, Unknown) else interfaces:
            if server is not None and reaches(interface, server):
                used.setdefault(interface.name, mount.target)

    def reason(port: RdmaPort) -> str | None:
        target = used.get(port.interface or "")
        return f"carries storage: {target} is mounted over {port.interface}" if target else None

    return reason


def _server(source: str) -> str | None:
    """The address of `10.2.0.9:/data`, `[fd00::9]:/data` or `10.2.0.9@o2ib:/scratch`; None for a name."""
    found = re.match(r"\[?([0-9a-fA-F.:]+?)\]?(?:@\w+)?:/", source)
    return found[1] if found else None


def _told(excluded: dict[RdmaPort, str]) -> tuple[Why, ...]:
    told = []
    for port, reason in excluded.items():
        source = ONE_LINK_TYPE if "link type" in reason else ""
        told.append(Why("NCCL_IB_HCA", f"{port.device}:{port.port} is left out: it {reason}", source))
    return tuple(told)
