"""Role nccl on hosts with more than one way out: which interface and ports are the fabric."""

from __future__ import annotations

from typing import Any

import pytest
from planner_host import (
    DOCKER,
    LOOPBACK,
    MISSING,
    dpkg,
    facts,
    gpu,
    link,
    port,
    profile,
    said,
    stack,
    text,
    with_gpus,
)

from provision.controls.model import Judged, Status
from provision.controls.nccl_direct import gpu_direct
from provision.facts.known import Unknown
from provision.planners import nccl, nccl_file

PEERS = {"training": ["10.1.0.5", "10.1.0.6", "10.1.0.7"]}


def plan(items: dict[str, Any], **wanted: Any) -> Any:
    planned = nccl.wanted(facts(items={"file:/etc/nccl.conf": MISSING, **items}), profile(**wanted), stack())
    assert planned.refused is None, planned.refused
    return planned


def conf(planned: Any) -> dict[str, str]:
    return nccl_file.effective(planned.files[0].text)


def cluster(*links: dict[str, Any], **wanted: Any) -> str:
    """The interface for a host of the cluster whose default route leads over ens5."""
    items = {"ip.addresses": said([LOOPBACK, link("ens5", "192.168.7.5"), DOCKER, *links])}
    given = {"firewall_cluster_peers": ["training"], "firewall_peers": PEERS, **wanted}
    return conf(plan(items, **given))["NCCL_SOCKET_IFNAME"]


def test_the_interface_of_the_clusters_addresses_comes_before_the_default_route() -> None:
    assert cluster(link("ens6", "10.1.0.5")) == "=ens6"
    assert cluster(link("ens6", "10.1.0.5"), firewall_cluster_peers=[]) == "=ens5"
    assert cluster(link("ens6", "10.1.0.5"), firewall_cluster_peers=["10.1.0.0/24"]) == "=ens6"


def test_a_bond_is_taken_and_its_members_are_not() -> None:
    members = [link("ens6", None, master="bond0"), link("ens7", None, master="bond0")]
    assert cluster(*members, link("bond0", "10.1.0.5")) == "=bond0"


def test_a_vlan_on_the_bond_that_has_the_clusters_network_comes_before_the_bond() -> None:
    assert cluster(link("bond0", "10.9.0.5"), link("bond0.42", "10.1.0.5", link="bond0")) == "=bond0.42"


@pytest.mark.parametrize("name", ["enp129s0f0np0", "ibp12s0", "eth10", "lan-0.7"])
def test_odd_names_are_exact(name: str) -> None:
    assert cluster(link(name, "10.1.0.5"), link("eth1", "10.8.0.5")) == f"={name}"


def test_addresses_of_the_cluster_that_no_interface_is_near_leave_it_to_the_default_route() -> None:
    assert cluster(link("ens6", "10.8.0.5")) == "=ens5"
    assert cluster(link("ens6", "10.1.0.5", up=False)) == "=ens5"


def test_two_networks_of_the_cluster_the_one_with_more_peers_counts() -> None:
    peers = {"training": ["10.1.0.6", "10.8.0.6", "10.8.0.7"]}
    assert cluster(link("ens6", "10.1.0.5"), link("ens7", "10.8.0.5"), firewall_peers=peers) == "=ens7"


def test_a_host_with_ipv6_alone() -> None:
    six = {"family": "inet6", "local": "fd00::5", "prefixlen": 64, "scope": "global"}
    own = {**link("ens6", None), "addr_info": [six]}
    far = {**link("ens5", None), "addr_info": [{**six, "local": "2001:db8::5"}]}
    items = {"ip.addresses": said([LOOPBACK, far, own]), "ip.routes": said([])}
    given = {"firewall_cluster_peers": ["training"], "firewall_peers": {"training": ["fd00::5", "fd00::6"]}}
    assert conf(plan(items, **given))["NCCL_SOCKET_IFNAME"] == "=ens6"


def hca(*ports: dict[str, Any], **items: Any) -> tuple[str | None, str]:
    """The ports chosen, and what is said of those that are not."""
    planned = plan({"rdma": said(list(ports)), **items})
    return conf(planned).get("NCCL_IB_HCA"), " ".join(why.says for why in planned.why)


def mounted(source: str, kind: str = "nfs4") -> dict[str, Any]:
    row = {"target": "/data", "source": source, "fstype": kind, "options": "rw"}
    return {
        "findmnt": said({"filesystems": [row]}),
        "ip.addresses": said([LOOPBACK, link("ens5", "10.0.0.5"), link("ens6", "10.2.0.5")]),
    }


ROCE = {"layer": "Ethernet", "rate": "200 Gb/sec"}


@pytest.mark.parametrize("source", ["10.2.0.9:/export", "10.2.0.9@o2ib:/scratch"])
def test_a_port_that_carries_storage_is_left_out(source: str) -> None:
    compute, storage = port("mlx5_0", netdevs=["ens7"], **ROCE), port("mlx5_4", netdevs=["ens6"], **ROCE)
    chosen, says = hca(compute, storage, **mounted(source, "lustre" if "@" in source else "nfs4"))
    assert chosen == "=mlx5_0:1"
    assert "mlx5_4:1 is left out: it carries storage: /data is mounted over ens6" in says


def test_the_only_port_serves_storage_and_nccl() -> None:
    assert hca(port("mlx5_4", netdevs=["ens6"], **ROCE), **mounted("10.2.0.9:/export"))[0] == "=mlx5_4:1"


def test_a_mount_by_name_or_from_another_network_says_nothing() -> None:
    both = port("mlx5_0", netdevs=["ens7"], **ROCE), port("mlx5_4", netdevs=["ens6"], **ROCE)
    for source in ("nfs.example:/export", "10.77.0.9:/export"):
        assert hca(*both, **mounted(source))[0] == "=mlx5_0:1,mlx5_4:1"


def test_virtual_functions_are_left_out_beside_their_card_and_taken_alone() -> None:
    card, function = port("mlx5_0"), port("mlx5_2", physical_function="0000:05:00.0")
    chosen, says = hca(card, function)
    assert chosen == "=mlx5_0:1"
    assert "mlx5_2:1 is left out: it is a virtual function" in says
    assert hca(function)[0] == "=mlx5_2:1"


def test_two_fabrics_the_faster_one_is_used_and_the_other_told() -> None:
    fast = [port(f"mlx5_{n}") for n in range(2)]
    chosen, says = hca(*fast, port("mlx5_8", rate="100 Gb/sec"))
    assert chosen == "=mlx5_0:1,mlx5_1:1"
    assert "mlx5_8:1 is left out: it has 100 Gbit/s" in says


OPEN = text("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build\n")
KERNEL_510 = said("Linux gpu01 5.10.0-30-amd64 #1 SMP Debian x86_64 GNU/Linux\n")
PEERMEM = said(
    "Module                  Size  Used by\nnvidia_peermem 16384 0\nnvidia 62300160 2 nvidia_peermem\n"
)


def direct(card: str = "NVIDIA A100-SXM4-80GB", **items: Any) -> Any:
    seen = facts(items={"rdma": said([port("mlx5_0")]), **items})
    cluster_ = profile(firewall_cluster_peers=["training"])
    return gpu_direct(Judged(with_gpus(seen, gpu(0, name=card)), cluster_, Unknown("none")))


def test_the_way_between_gpus_and_ports() -> None:
    version = {"file:/proc/driver/nvidia/version": OPEN}
    closed = direct()
    assert (closed.status, "proprietary" in closed.actual) == (Status.WARN, True)
    assert direct(lsmod=PEERMEM).actual == "over nvidia_peermem"
    assert direct(**version).actual == "over DMA-BUF"
    assert "older than 5.12" in direct(**version, uname=KERNEL_510).actual
    assert (
        "came with 2.13.4"
        in direct(**version, **{"dpkg.list": dpkg({"libnccl2": "2.11.4-1+cuda11.6"})}).actual
    )


def test_where_there_is_no_such_way_none_is_missed() -> None:
    assert gpu_direct(Judged(facts(), profile(), Unknown("none"))).status is Status.SKIP
    assert direct(rdma=said([])).status is Status.SKIP
    assert direct(card="NVIDIA GeForce RTX 4090").status is Status.SKIP
    assert direct(virtualization=said("lxc\n")).status is Status.SKIP
    assert direct(rdma={"denied": True}).status is Status.UNKNOWN
    assert direct(lsmod={"denied": True}).status is Status.UNKNOWN
