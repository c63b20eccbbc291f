"""NCCL's interface and ports on real links: veth, bridge, bond and VLAN in a network namespace of their own,
with a tree of files in the place of /sys/class/infiniband. What is computed is what one would write by hand.

A kernel without one kind of link skips its shapes, and says so. Nothing outside the namespace is touched.
"""

# ruff: noqa: E501

from __future__ import annotations

import subprocess
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from provision.facts import Facts
from provision.planners import nccl
from provision.profile.compose import compose
from provision.recording.remote import record
from provision.transport import child
from provision.transport.target import Target

if TYPE_CHECKING:
    from collections.abc import Sequence

    from provision.profile.model import Profile

PEERS = {"training": ["10.1.0.5", "10.1.0.6", "10.1.0.7"]}
# `pair NAME ADDRESS`: a link whose other end stands for the switch, so that it carries.
WORDS = r"""
set -e
ip link set lo up
pair() { ip link add name "$1" type veth peer name "sw$((n = ${n:-0} + 1))"; ip link set "sw$n" up
    [ -z "${2:-}" ] || ip addr add "$2" dev "$1" nodad; ip link set "$1" up; }
# DEVICE PORT STATE LAYER RATE [INTERFACE [VPD]], as the kernel has them.
port() { at="$IB/$1/ports/$2"; mkdir -p "$at/gids" "$at/gid_attrs/types" "$at/gid_attrs/ndevs"
    echo "$3" > "$at/state"; echo "$4" > "$at/link_layer"; echo "$5" > "$at/rate"
    echo 0000:0000:0000:0000:0000:ffff:0a01:0005 > "$at/gids/0"
    if [ "$4" = Ethernet ]; then echo "RoCE v2"; else echo "IB/RoCE v1"; fi > "$at/gid_attrs/types/0"
    [ -z "${6:-}" ] || echo "$6" > "$at/gid_attrs/ndevs/0"
    mkdir -p "$IB/$1/device"; printf '%s' "${7:-}" > "$IB/$1/device/vpd"; }
# /sys of this namespace, with room for a class that the kernel may not have.
mount -t sysfs none /sys
old=$(mktemp -d); mount --bind /sys/class/net "$old"; mount -t tmpfs none /sys/class; mkdir /sys/class/net
mount --bind "$old" /sys/class/net; umount "$old"; rmdir "$old"
IB=/sys/class/infiniband
"""
ACTIVE, DOWN, HDR, HUNDRED = '"4: ACTIVE"', '"1: DOWN"', '"200 Gb/sec (4X HDR)"', '"100 Gb/sec (4X EDR)"'
MANAGEMENT = "pair eno1 192.168.7.5/24; ip route add default via 192.168.7.1 dev eno1"


@dataclass(frozen=True)
class Shape:
    """Links made by `setup`, and the settings that are right there."""

    name: str
    setup: str
    wanted: dict[str, str]
    variables: dict[str, Any] = field(default_factory=dict)
    needs: str | None = None


CLUSTER = {"firewall_cluster_peers": ["training"], "firewall_peers": PEERS}
SOCKETS = {"NCCL_IB_DISABLE": "1"}
SHAPES = (
    Shape("one link", "pair ens5 10.1.0.5/24; ip route add default via 10.1.0.1 dev ens5", {"NCCL_SOCKET_IFNAME": "=ens5", **SOCKETS}),
    Shape("a cluster's link beside the default route", f"{MANAGEMENT}; pair eth10 10.1.0.5/24; pair eth1 10.8.0.5/24",
          {"NCCL_SOCKET_IFNAME": "=eth10", **SOCKETS}, CLUSTER),
    Shape("a bridge of containers in the way", f"{MANAGEMENT}; ip link add docker0 type bridge; ip addr add 172.17.0.1/16 dev docker0; "
          "ip link set docker0 up; pair veth12ab; ip link set veth12ab master docker0", {"NCCL_SOCKET_IFNAME": "=eno1", **SOCKETS}),
    Shape("a bridge over the link", "pair ens5; ip link add br0 type bridge; ip link set ens5 master br0; ip addr add 10.1.0.5/24 dev br0; "
          "ip link set br0 up; ip route add default via 10.1.0.1 dev br0", {"NCCL_SOCKET_IFNAME": "=br0", **SOCKETS}),
    Shape("a bond over its members", f"{MANAGEMENT}; ip link add bond0 type bond mode active-backup; pair ens6; pair ens7; "
          "ip link set ens6 down; ip link set ens7 down; ip link set ens6 master bond0; ip link set ens7 master bond0; "
          "ip addr add 10.1.0.5/24 dev bond0; ip link set bond0 up", {"NCCL_SOCKET_IFNAME": "=bond0", **SOCKETS}, CLUSTER, "bond"),
    Shape("a VLAN beside its link", f"{MANAGEMENT}; pair ens6 10.9.0.5/24; ip link add link ens6 name ens6.42 type vlan id 42; "
          "ip addr add 10.1.0.5/24 dev ens6.42; ip link set ens6.42 up", {"NCCL_SOCKET_IFNAME": "=ens6.42", **SOCKETS}, CLUSTER, "vlan"),
    Shape("IPv6 alone", "pair ens6 fd00::5/64; pair ens5 2001:db8::5/64", {"NCCL_SOCKET_IFNAME": "=ens6", **SOCKETS},
          {"firewall_cluster_peers": ["training"], "firewall_peers": {"training": ["fd00::5", "fd00::6"]}}),
    Shape("a link without carrier", f"{MANAGEMENT}; pair ens6 10.1.0.5/24; ip link set sw2 down", {"NCCL_SOCKET_IFNAME": "=eno1", **SOCKETS}, CLUSTER),
    Shape("InfiniBand with switch ports and one that is down", f"{MANAGEMENT}; port mlx5_0 1 {ACTIVE} InfiniBand {HDR}; "
          f"port mlx5_1 1 {ACTIVE} InfiniBand {HDR}; port mlx5_10 1 {DOWN} InfiniBand {HDR}; port mlx5_8 1 {ACTIVE} InfiniBand {HDR} '' SW_MNG",
          {"NCCL_SOCKET_IFNAME": "=eno1", "NCCL_IB_HCA": "=mlx5_0:1,mlx5_1:1"}),
    Shape("RoCE, and a slower second fabric", f"{MANAGEMENT}; pair ens6 10.1.0.5/24; port mlx5_2 1 {ACTIVE} Ethernet {HDR} ens6; "
          f"port mlx5_3 1 {ACTIVE} Ethernet {HUNDRED} eno1", {"NCCL_SOCKET_IFNAME": "=ens6", "NCCL_IB_HCA": "=mlx5_2:1"}, CLUSTER),
)  # fmt: skip


class Namespace:
    """A session to this machine as it would be with other links: a namespace for each command."""

    sudo_password = None

    def __init__(self, setup: str) -> None:
        self._setup = f"exec 3<&0 </dev/null\n{WORDS}\n{setup}\nexec <&3\n"

    def run(self, argv: Sequence[str], stdin: bytes = b"", timeout: float = 60.0) -> child.Completed:
        return child.run(
            ["unshare", "-n", "-m", "sh", "-c", f'{self._setup}\nexec "$@"', "sh", *argv], stdin, timeout
        )


def profile(shape: Shape) -> Profile:
    return compose("test", {}, {}, shape.variables)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_the_settings_are_those_that_one_would_write(shape: Shape) -> None:
    if shape.needs:
        asked = ["unshare", "-n", "ip", "link", "add", "name", "eth7", "type", shape.needs]
        made = subprocess.run(asked, capture_output=True, text=True)
        if "Unknown device type" in made.stderr or "not supported" in made.stderr:
            pytest.skip(f"this kernel has no links of kind {shape.needs}")
    recording = record(Namespace(shape.setup), target=Target("gpu01", "gpu01"))
    chosen = nccl.settings(Facts(recording), profile(shape))
    assert chosen.refused is None, chosen.refused
    assert chosen.values == shape.wanted, (chosen.why, recording.items["ip.addresses"])
