"""Network interfaces and RDMA ports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .answers import flag_of, int_of, quote, rows, text_of
from .known import Unknown
from .pci import bus_id
from .record import record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..recording.model import Answer


@record
class Address:
    """One address with its prefix length. `scope` is the kernel's word: global, link, host."""

    ip: str
    prefix: int
    scope: str

    @property
    def is_v6(self) -> bool:
        return ":" in self.ip


@record
class Interface:
    """One interface.

    `kind` is the kernel's (bond, bridge, vlan, veth, …), or `loopback`, `infiniband`, `ethernet`.
    `up` means that it is switched on and carries, `virtual` that no device stands behind it.
    `members` are the interfaces that have this one as master.
    """

    name: str
    kind: str
    up: bool
    mtu: int | None
    addresses: tuple[Address, ...]
    master: str | None
    members: tuple[str, ...]
    mac: str | None
    speed_mbit: int | None = None
    pci_address: str | None = None
    driver: str | None = None
    numa_node: int | None = None
    virtual: bool | None = None
    virtual_function: bool = False

    @property
    def routable(self) -> tuple[Address, ...]:
        """Addresses that another host can reach: not loopback's, not link-local ones."""
        return tuple(a for a in self.addresses if a.scope == "global")


@record
class RdmaPort:
    """One port below /sys/class/infiniband.

    `rate_gbit` in Gbit/s; `switch_management` marks NVSwitch's own ports, which carry no traffic of ours.
    """

    device: str
    port: int
    state: str
    link_layer: str
    rate_gbit: float | None
    gids: tuple[tuple[int, str, str], ...]
    interface: str | None
    address: str | None
    numa_node: int | None
    vendor: str | None
    driver: str | None
    switch_management: bool
    virtual_function: bool = False

    @property
    def active(self) -> bool:
        return self.state == "ACTIVE"


@record
class DefaultRoute:
    """A way out of the host: the interface that carries it, and its metric (the lowest counts)."""

    interface: str
    metric: int


def default_routes(answer: Answer) -> tuple[DefaultRoute, ...] | Unknown:
    """The default routes of `ip -j route`, the one that counts first; empty where there is none."""
    found = rows(answer)
    if isinstance(found, Unknown):
        return found
    result: list[DefaultRoute] = []
    for row in found:
        name = text_of(row, "dev")
        if row.get("dst") in ("default", "0.0.0.0/0") and name is not None:
            result.append(DefaultRoute(name, int_of(row, "metric") or 0))
    return tuple(sorted(result, key=lambda route: route.metric))


def interfaces(addresses: Answer, links: Answer, net: Answer) -> tuple[Interface, ...] | Unknown:
    """`ip -j addr`, completed by `ip -j link` (kinds, masters) and /sys (speed, device, driver)."""
    found = rows(addresses)
    if isinstance(found, Unknown):
        return found
    linked, beyond = rows(links), rows(net)
    by_name: dict[str, dict[str, Any]] = {}
    for row in found:
        name = text_of(row, "ifname")
        if name is None:
            # `ip -j` prints an empty object for an entry that a filter left out.
            if row:
                return Unknown(f"ip addr: an entry without a name: {quote(str(row))}", addresses.item)
            continue
        by_name[name] = row
    if not by_name:
        return Unknown("ip addr: no interface was listed", addresses.item)
    extra = {} if isinstance(linked, Unknown) else {text_of(row, "ifname"): row for row in linked if row}
    sysfs = {} if isinstance(beyond, Unknown) else {text_of(row, "name"): row for row in beyond}
    merged = {name: {**extra.get(name, {}), **row} for name, row in by_name.items()}
    masters = {name: text_of(row, "master") for name, row in merged.items()}
    result = []
    for name, row in merged.items():
        members = tuple(member for member, master in masters.items() if master == name)
        interface = _interface(name, row, sysfs.get(name, {}), members, addresses.item)
        if isinstance(interface, Unknown):
            return interface
        result.append(interface)
    return tuple(result)


def _interface(
    name: str, row: dict[str, Any], device: dict[str, Any], members: tuple[str, ...], item: str
) -> Interface | Unknown:
    flags = row.get("flags")
    info = row.get("addr_info", [])
    if not isinstance(flags, list) or not isinstance(info, list):
        return Unknown(f"ip addr: {name} has no flags or addresses", item)
    state = text_of(row, "operstate") or "UNKNOWN"
    up = "UP" in flags and (state == "UP" or (state == "UNKNOWN" and "NO-CARRIER" not in flags))
    addresses = []
    for entry in info:
        if not isinstance(entry, dict) or not entry:
            continue
        ip, prefix = text_of(entry, "local"), int_of(entry, "prefixlen")
        if ip is None or prefix is None:
            return Unknown(f"ip addr: {name} has an address that is none: {quote(str(entry))}", item)
        addresses.append(Address(ip, prefix, text_of(entry, "scope") or ""))
    return Interface(
        name,
        _kind(row, flags, members),
        up,
        int_of(row, "mtu"),
        tuple(addresses),
        text_of(row, "master"),
        members,
        text_of(row, "address"),
        int_of(device, "speed"),
        bus_id(text_of(device, "pci") or ""),
        text_of(device, "driver"),
        _node(device),
        flag_of(device, "virtual"),
        text_of(device, "physical_function") is not None,
    )


def _node(row: dict[str, Any]) -> int | None:
    """The kernel writes -1 where the firmware names no NUMA node."""
    node = int_of(row, "numa_node")
    return node if node is not None and node >= 0 else None


def _kind(row: Mapping[str, Any], flags: list[Any], members: tuple[str, ...]) -> str:
    """The kernel's own word with `ip -d`; else what flags and names of the link tell."""
    info = row.get("linkinfo")
    if isinstance(info, dict) and isinstance(info.get("info_kind"), str):
        return str(info["info_kind"])
    if "LOOPBACK" in flags:
        return "loopback"
    if row.get("link_type") == "infiniband":
        return "infiniband"
    if row.get("link_type") not in {"ether", None}:
        return str(row["link_type"])
    if "MASTER" in flags:
        return "bond"
    name = str(row.get("ifname", ""))
    if members or name.startswith(("docker", "br-", "virbr", "cni")):
        return "bridge"
    if name.startswith("veth") or "link_netnsid" in row:
        return "veth"
    if isinstance(row.get("link"), str):
        return "vlan"
    if name.startswith(("tun", "tap", "wg", "tailscale")):
        return "tun"
    return "ethernet"


def rdma(answer: Answer) -> tuple[RdmaPort, ...] | Unknown:
    found = rows(answer, "ports")
    if isinstance(found, Unknown):
        return found
    result = []
    for row in found:
        device, port = text_of(row, "device", "name"), int_of(row, "port")
        state = (text_of(row, "state") or "").rpartition(":")[2].strip().upper()
        if device is None or port is None or not state:
            return Unknown(f"rdma: an entry without device, port or state: {quote(str(row))}", answer.item)
        rate = (text_of(row, "rate") or "").split()
        netdevs = row.get("netdevs")
        first = str(netdevs[0]) if isinstance(netdevs, list) and netdevs else None
        result.append(
            RdmaPort(
                device,
                port,
                state,
                text_of(row, "link_layer") or "",
                float(rate[0]) if rate and rate[0].replace(".", "", 1).isdecimal() else None,
                _gids(row.get("gids")),
                text_of(row, "interface") or _netdev(row.get("gids")) or first,
                bus_id(text_of(row, "pci", "address") or ""),
                _node(row),
                (text_of(row, "vendor") or "").removeprefix("0x") or None,
                text_of(row, "driver"),
                flag_of(row, "switch_management") is True or "SW_MNG" in (text_of(row, "vpd") or ""),
                text_of(row, "physical_function") is not None,
            )
        )
    return tuple(result)


def _netdev(gids: Any) -> str | None:
    """The interface that the port's GIDs belong to."""
    entries = gids if isinstance(gids, list) else ()
    return next(
        (name for entry in entries if isinstance(entry, dict) and (name := text_of(entry, "netdev"))), None
    )


def _gids(value: Any) -> tuple[tuple[int, str, str], ...]:
    """(index, GID, type) of each entry of a port's GID table that is in use."""
    result = []
    for position, entry in enumerate(value if isinstance(value, list) else ()):
        if isinstance(entry, dict):
            index = int_of(entry, "index")
            gid, kind = text_of(entry, "gid", "value"), text_of(entry, "type") or ""
            if gid is not None:
                result.append((position if index is None else index, gid, kind))
    return tuple(result)
