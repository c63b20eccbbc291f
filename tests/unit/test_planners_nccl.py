"""Role nccl: which interface and RDMA ports, whose word counts, and what becomes of a file that was there."""

# ruff: noqa: E501

from __future__ import annotations

from typing import Any

import pytest
import yaml
from planner_host import DOCKER, LOOPBACK, MISSING, dpkg, facts, link, port, profile, said, stack, text

from provision.catalog.numbers import below
from provision.facts.known import Unknown
from provision.planners import nccl, nccl_file
from provision.planners.nccl_names import _DATA as DATA
from provision.planners.nccl_names import unread, variables

CONF = "file:/etc/nccl.conf"


def plan(there: str | None = None, changed: dict[str, Any] | None = None, **wanted: Any) -> Any:
    items = {CONF: MISSING if there is None else text(there), **(changed or {})}
    return nccl.wanted(facts(items=items), profile(**wanted), stack())


def conf(planned: Any) -> dict[str, str]:
    assert planned.refused is None, planned.refused
    return nccl_file.effective(planned.files[0].text)


def test_default_route_names_the_interface_exactly() -> None:
    assert conf(plan())["NCCL_SOCKET_IFNAME"] == "=ens5"


def test_two_ways_out_the_lower_metric_counts() -> None:
    changed = {
        "ip.addresses": said([LOOPBACK, link("ens5", "10.0.0.5"), link("ens6", "10.1.0.5")]),
        "ip.routes": said([{"dst": "default", "dev": "ens6", "metric": 200}, {"dst": "default", "dev": "ens5", "metric": 50}]),
    }  # fmt: skip
    assert conf(plan(changed=changed))["NCCL_SOCKET_IFNAME"] == "=ens5"


def test_without_a_default_route_the_only_fit_interface_is_taken() -> None:
    assert conf(plan(changed={"ip.routes": said([])}))["NCCL_SOCKET_IFNAME"] == "=ens5"


def test_without_a_default_route_two_interfaces_refuse() -> None:
    changed = {
        "ip.addresses": said([LOOPBACK, link("ens5", "10.0.0.5"), link("ens6", "10.1.0.5")]),
        "ip.routes": said([]),
    }
    assert "Fit are: ens5, ens6" in plan(changed=changed).refused


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("eno1", "does not have"),
        ("docker0", "is a network of Docker"),
        ("lo", "is the loopback"),
        ("ens6", "is down"),
        ("ens7", "has no address"),
        ("ens8", "is a member of bond0"),
    ],
)
def test_a_named_interface_that_cannot_reach_a_host_is_refused(name: str, reason: str) -> None:
    links = [LOOPBACK, link("ens5", "10.0.0.5"), DOCKER, link("ens6", "10.1.0.5", up=False), link("ens7", None),
             link("ens8", None, master="bond0"), link("bond0", "10.2.0.5")]  # fmt: skip
    refused = plan(changed={"ip.addresses": said(links)}, nccl_interface=name).refused
    assert refused is not None
    assert reason in refused
    assert "Fit are: ens5, bond0" in refused


def test_a_named_interface_is_taken() -> None:
    changed = {"ip.addresses": said([LOOPBACK, link("ens5", "10.0.0.5"), link("ens6", "10.1.0.5")])}
    assert conf(plan(changed=changed, nccl_interface="ens6"))["NCCL_SOCKET_IFNAME"] == "=ens6"


def test_a_virtual_host_whose_only_link_is_a_veth_uses_it() -> None:
    changed = {
        "ip.addresses": said([LOOPBACK, link("eth0", "10.0.0.5", link_netnsid=0)]),
        "ip.routes": said([{"dst": "default", "dev": "eth0"}]),
    }
    assert conf(plan(changed=changed))["NCCL_SOCKET_IFNAME"] == "=eth0"


def test_no_rdma_port_switches_ib_off_and_one_does_not() -> None:
    assert conf(plan())["NCCL_IB_DISABLE"] == "1"
    found = conf(plan(changed={"rdma": said([port("mlx5_0"), port("mlx5_1", "DOWN")])}))
    assert found["NCCL_IB_HCA"] == "=mlx5_0:1"
    assert "NCCL_IB_DISABLE" not in found


def test_ports_of_nvswitches_other_links_and_slower_ones_are_left_out_with_reasons() -> None:
    ports = [port("mlx5_0"), port("mlx5_1"), port("mlx5_2", layer="Ethernet"), port("mlx5_3", rate="100 Gb/sec"),
             port("mlx5_8", switch_management=True), port("mlx5_10", "INIT")]  # fmt: skip
    planned = plan(changed={"rdma": said(ports)})
    assert conf(planned)["NCCL_IB_HCA"] == "=mlx5_0:1,mlx5_1:1"
    says = " ".join(why.says for why in planned.why)
    for left in ("mlx5_2:1", "mlx5_3:1", "mlx5_8:1", "mlx5_10:1"):
        assert f"{left} is left out" in says


def test_switch_ports_alone_are_no_rdma() -> None:
    assert (
        conf(plan(changed={"rdma": said([port("mlx5_8", switch_management=True)])}))["NCCL_IB_DISABLE"] == "1"
    )


def test_roce_is_used_where_there_is_no_infiniband() -> None:
    found = conf(plan(changed={"rdma": said([port("mlx5_bond_0", layer="Ethernet", rate="200 Gb/sec")])}))
    assert found["NCCL_IB_HCA"] == "=mlx5_bond_0:1"


def test_an_iwarp_card_has_no_roce_address_and_is_left_out() -> None:
    card = {**port("irdma0", layer="Ethernet"), "gids": [{"index": 0, "gid": "02::1", "type": ""}]}
    found = conf(plan(changed={"rdma": said([card])}))
    assert not {"NCCL_IB_HCA", "NCCL_IB_DISABLE"} & set(found)


def test_unknown_rdma_sets_nothing_about_it() -> None:
    found = conf(plan(changed={"rdma": {"timed_out": True, "rc": None, "seconds": 5}}))
    assert not {"NCCL_IB_HCA", "NCCL_IB_DISABLE"} & set(found)


def test_a_misspelt_variable_is_refused_with_the_right_name() -> None:
    assert "Did you mean NCCL_SOCKET_IFNAME?" in plan(nccl_variables={"NCCL_SOKET_IFNAME": "eth0"}).refused
    assert "NCCL reads no variable OMP_NUM_THREADS" in plan(nccl_variables={"OMP_NUM_THREADS": 4}).refused


@pytest.mark.parametrize("value", [["a"], "", "a\nb", {"x": 1}, None])
def test_a_value_that_is_no_line_is_refused(value: Any) -> None:
    assert "one line" in plan(nccl_variables={"NCCL_IB_TIMEOUT": value}).refused


def test_values_are_written_as_nccl_reads_them() -> None:
    found = conf(
        plan(nccl_variables={"NCCL_IB_TIMEOUT": 22, "NCCL_DMABUF_ENABLE": True, "NCCL_ALGO": "^Tree"})
    )
    assert (found["NCCL_IB_TIMEOUT"], found["NCCL_DMABUF_ENABLE"], found["NCCL_ALGO"]) == ("22", "1", "^Tree")


def test_named_variables_come_before_computed_ones() -> None:
    found = conf(plan(nccl_variables={"NCCL_SOCKET_IFNAME": "=ens5,ens6"}))
    assert found["NCCL_SOCKET_IFNAME"] == "=ens5,ens6"
    assert "NCCL_IB_DISABLE" not in conf(plan(nccl_variables={"NCCL_IB_HCA": "=mlx5_0"}))


def test_foreign_lines_are_kept_and_a_second_run_changes_nothing() -> None:
    there = "# ours since 2023\nNCCL_IB_TIMEOUT=22\nNCCL_SOCKET_IFNAME=ens\n"
    first = plan(there)
    assert conf(first) | {"NCCL_IB_TIMEOUT": "22", "NCCL_SOCKET_IFNAME": "ens"} == conf(first)
    assert "# ours since 2023" in first.files[0].text
    assert plan(first.files[0].text).files == first.files


@pytest.mark.parametrize("gone", ["# END gpu-provision", "# BEGIN gpu-provision", "both"])
def test_a_block_that_lost_a_mark_swallows_no_line_of_the_users(gone: str) -> None:
    own = ["NCCL_DEBUG=INFO", "# a note", "NCCL_MAX_NCHANNELS=8"]
    whole = plan().files[0].text + "\n".join(own) + "\n"
    kept = [line for line in whole.splitlines() if gone != "both" and not line.startswith(gone)]
    damaged = "\n".join(kept or [line for line in whole.splitlines() if "gpu-provision" not in line]) + "\n"
    mended = plan(damaged).files[0].text
    assert [line for line in mended.splitlines() if line in own] == own
    assert nccl_file.effective(mended) == nccl_file.effective(whole)
    assert mended.count("# BEGIN gpu-provision") == mended.count("# END gpu-provision") == 1
    assert plan(mended).files[0].text == mended


def test_a_block_written_twice_is_one_again() -> None:
    once = plan().files[0].text
    mended = plan(once + once.replace("# END gpu-provision\n", "") + "NCCL_DEBUG=INFO\n").files[0].text
    assert "NCCL_DEBUG=INFO" in mended.splitlines()
    assert plan(mended).files[0].text == mended


def test_a_foreign_interface_that_is_not_there_refuses_and_says_how_to_replace_it() -> None:
    there = "NCCL_SOCKET_IFNAME=eth0\n"
    refused = plan(there).refused
    assert "no such interface" in refused
    assert "nccl_interface: ens5" in refused
    replaced = plan(there, nccl_interface="ens5")
    assert conf(replaced)["NCCL_SOCKET_IFNAME"] == "=ens5"
    assert "# replaced by gpu-provision: NCCL_SOCKET_IFNAME=eth0" in replaced.files[0].text
    assert plan(replaced.files[0].text, nccl_interface="ens5").files == replaced.files


def test_a_foreign_line_that_switches_off_a_live_fabric_refuses() -> None:
    changed = {"rdma": said([port("mlx5_0")])}
    refused = plan("NCCL_IB_DISABLE=1\n", changed).refused
    assert "active RDMA ports" in refused
    assert (
        conf(plan("NCCL_IB_DISABLE=1\n", changed, nccl_variables={"NCCL_IB_DISABLE": 1}))["NCCL_IB_DISABLE"]
        == "1"
    )


def test_what_cannot_be_read_is_not_written_over() -> None:
    assert (
        "cannot be read"
        in nccl.wanted(facts(items={CONF: {"denied": True}}), profile(), Unknown("none")).refused
    )


@pytest.mark.parametrize(
    ("value", "name", "number", "hit"),
    [
        ("eth", "eth10", None, True),
        ("=eth1", "eth10", None, False),
        ("=eth1,eth10", "eth10", None, True),
        ("^docker,lo", "ens5", None, True),
        ("^docker", "docker0", None, False),
        ("^=eth1", "eth10", None, True),
        ("mlx5_1", "mlx5_10", 1, True),
        ("=mlx5_1:1", "mlx5_1", 2, False),
        ("=mlx5_1:1", "mlx5_1", 1, True),
    ],
)
def test_filters_match_as_in_nccl(value: str, name: str, number: int | None, hit: bool) -> None:
    assert nccl.matches(value, name, number) is hit


def test_the_names_are_those_of_the_documentation() -> None:
    documented = {"NCCL_SOCKET_IFNAME", "NCCL_IB_HCA", "NCCL_DEBUG", "NCCL_P2P_LEVEL", "NCCL_NET_GDR_LEVEL", "NCCL_ALGO",
                  "NCCL_CROSS_NIC", "NCCL_IB_GID_INDEX", "NCCL_NVLS_ENABLE", "NCCL_MIN_NCHANNELS"}  # fmt: skip
    assert documented <= variables()


ROCE = {"rate": "200 Gb/sec", "layer": "Ethernet"}
LINK_LOCAL = {"index": 0, "gid": "fe80:0000:0000:0000:0000:0000:0000:0001", "type": "IB/RoCE v1"}


def roce(device: str, *indexes: int) -> dict[str, Any]:
    """A RoCE port whose table has a routable address of version 2 at these indexes, and of version 1 before each."""
    gid = "0000:0000:0000:0000:0000:ffff:0a00:0005"
    pairs = [
        ({"index": i - 1, "gid": gid, "type": "IB/RoCE v1"}, {"index": i, "gid": gid, "type": "RoCE v2"})
        for i in indexes
    ]
    v2 = {"index": 1, "gid": LINK_LOCAL["gid"], "type": "RoCE v2"}
    return {**port(device, **ROCE), "gids": [LINK_LOCAL, v2, *(gid for pair in pairs for gid in pair)]}


def gid_index(version: str | None, *ports: dict[str, Any]) -> str | None:
    packages = {} if version is None else {"libnccl2": version}
    return conf(plan(changed={"rdma": said(list(ports)), "dpkg.list": dpkg(packages)})).get(
        "NCCL_IB_GID_INDEX"
    )


@pytest.mark.parametrize(
    ("version", "ports", "index"),
    [
        ("2.18.3-1+cuda12.2", (roce("mlx5_0", 3), roce("mlx5_1", 3)), "3"),
        ("2.20.5-1+cuda12.4", (roce("mlx5_0", 3, 5), roce("mlx5_1", 5)), "5"),
        ("2.20.5-1+cuda12.4", (roce("mlx5_0", 3), roce("mlx5_1", 5)), None),
        ("2.21.5-1+cuda12.4", (roce("mlx5_0", 3),), None),
        ("2.30.7-1+cuda13.3", (roce("mlx5_0", 3),), None),
        ("2.18.3-1+cuda12.2", (port("mlx5_0"),), None),
        (None, (roce("mlx5_0", 3),), None),
    ],
)
def test_a_gid_index_is_set_only_for_an_nccl_that_does_not_look_itself(
    version: str | None, ports: tuple[dict[str, Any], ...], index: str | None
) -> None:
    assert gid_index(version, *ports) == index


@pytest.mark.parametrize(
    ("name", "release", "why"),
    [
        ("NCCL_IB_ROCE_VERSION_NUM", "2.20.5", "came with 2.21.5"),
        ("NCCL_WORK_FIFO_DEPTH", "2.22.3", "2.21.5 was the last"),
        ("NCCL_WORK_FIFO_DEPTH", "2.21.5", None),
        ("NCCL_SOCKET_IFNAME", "2.30.7", None),
        ("NCCL_IBEXT_DISABLE", "2.30.7", None),
    ],
)
def test_releases_that_read_a_variable(name: str, release: str, why: str | None) -> None:
    said_ = unread(name, release)
    assert said_ is None if why is None else why in (said_ or "")


def test_no_variable_ends_before_it_began() -> None:
    rows = yaml.safe_load(DATA.read_text(encoding="utf-8"))["nccl"]
    for name, row in rows.items():
        assert set(row) <= {"since", "last"}, name
        assert not below(row.get("last", "99"), row.get("since")), name
