"""Hosts of a group beside each other: what differs, and whether they exchange data, over real sockets."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from planner_host import LOOPBACK, dpkg, facts, link, profile, said, text

import provision
from provision.controls.alike import MTU, RELEASE, traits
from provision.report.model import Judgement
from provision.runs.drift import drift, groups_of
from provision.runs.managed import Managed
from provision.runs.peers import NEXT, Place, _peers, clusters, exchange, place
from provision.transport.local import Local
from provision.transport.target import Target
from provision.verify.result import CheckStatus

PROGRAM = Path(provision.__file__).parent / "verify" / "on_host" / "exchange.py"
LO = Place("lo", "127.0.0.1", None)
CONF = {"file:/etc/nccl.conf": text("NCCL_SOCKET_IFNAME==ens5\n")}


def managed(name: str, *groups: str, **wanted: Any) -> Managed:
    return Managed(Target(name, name), profile(**wanted), groups)


def judged(name: str, **told: str) -> Judgement:
    return Judgement(name, traits=told)


def test_hosts_exchange_data_each_with_each() -> None:
    hosts = dict.fromkeys(("gpu01", "gpu02", "gpu03"), LO)
    checks = exchange({name: Local() for name in hosts}, hosts)
    assert {name: (c.status, c.message) for name, c in checks.items()} == {
        "gpu01": (CheckStatus.PASSED, "with gpu02, gpu03 over lo"),
        "gpu02": (CheckStatus.PASSED, "with gpu03, gpu01 over lo"),
        "gpu03": (CheckStatus.PASSED, "with gpu01, gpu02 over lo"),
    }


def test_a_host_that_cannot_listen_fails_and_the_others_exchange_data() -> None:
    hosts = {"gpu01": LO, "gpu02": LO, "gpu03": Place("lo", "192.0.2.1", None)}
    checks = exchange({name: Local() for name in hosts}, hosts)
    assert [checks[name].status for name in hosts] == ["passed", "passed", "failed"]
    assert "nothing can listen on 192.0.2.1 (lo)" in checks["gpu03"].message


def test_a_peer_without_ipv6_where_one_has_nothing_else() -> None:
    hosts = {"gpu01": LO, "gpu02": Place("lo", None, "::1")}
    checks = exchange({name: Local() for name in hosts}, hosts)
    assert "lo has no IPv6 address" in checks["gpu01"].message


def test_who_listens_to_nobody_is_told_as_it_is() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        asked = {"talk": ["127.0.0.1", "lo"], "peers": [["gpu02", "127.0.0.1", closed.getsockname()[1]]]}
        done = subprocess.run([sys.executable, PROGRAM, json.dumps(asked)], capture_output=True, check=True)
    (told,) = json.loads(done.stdout)
    assert (told["peer"], told["wrong"]) == ("gpu02", "Connection refused")


def test_data_that_comes_back_otherwise_is_told() -> None:
    with socket.socket() as liar:
        liar.bind(("127.0.0.1", 0))
        liar.listen()
        asked = {"talk": ["127.0.0.1", "lo"], "peers": [["gpu02", *liar.getsockname()]]}
        with subprocess.Popen(
            [sys.executable, PROGRAM, json.dumps(asked)], stdout=subprocess.PIPE
        ) as talking:
            connection, _ = liar.accept()
            with connection:
                received = 0
                while received < 1 << 22:
                    received += len(connection.recv(1 << 16))
                connection.sendall(os.urandom(1 << 22))
            assert talking.stdout is not None
            (told,) = json.loads(talking.stdout.read())
    assert told["wrong"] == "what came back is not what was sent"


def test_a_listener_ends_with_its_controller() -> None:
    asked = {"listen": ["127.0.0.1", "lo"], "seconds": 60}
    with subprocess.Popen(
        [sys.executable, PROGRAM, json.dumps(asked)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline().strip().isdigit()
        process.stdin.close()
        assert process.wait(timeout=20) == 0


def test_each_of_many_hosts_tries_the_next_ones() -> None:
    names = tuple(f"gpu{n:02}" for n in range(20))
    assert _peers("gpu18", names) == ("gpu19", "gpu00", "gpu01", "gpu02")
    assert all(len(_peers(name, names)) == NEXT for name in names)
    assert len(_peers("gpu03", names[:8])) == 7


def test_only_hosts_that_let_each_other_in_are_tried() -> None:
    hosts = {
        "gpu01": managed("gpu01", "training", firewall_cluster_peers=["training"]),
        "gpu02": managed("gpu02", "training", firewall_cluster_peers=["training"]),
        "desk": managed("desk", "dev"),
        "alone": managed("alone", "other", firewall_cluster_peers=["other", "10.0.0.0/8"]),
    }
    assert clusters(hosts) == {"training": ("gpu01", "gpu02")}


def test_the_place_is_the_interface_that_nccl_is_given() -> None:
    assert place(facts(items=CONF)) == Place("ens5", "10.0.0.5", None)
    assert place(facts()) is None
    gone = {**CONF, "ip.addresses": said([LOOPBACK, link("ens5", "10.0.0.5", up=False)])}
    assert place(facts(items=gone)) is None


def test_traits_are_those_of_the_interface_and_the_release_in_use() -> None:
    items = {
        **CONF,
        "dpkg.list": dpkg({"libnccl2": "2.22.3-1+cuda12.4"}),
        "ip.addresses": said([LOOPBACK, link("ens5", "10.0.0.5", mtu=9000), link("ens6", "10.1.0.5")]),
    }
    told = traits(facts(items=items))
    assert (told[RELEASE], told[MTU]) == ("2.22.3", "9000")
    assert not {RELEASE, MTU} & set(traits(facts()))


def test_drift_names_the_odd_ones_of_each_group() -> None:
    mtus = {"gpu01": "9000", "gpu02": "1500", "gpu03": "9000", "desk": "1500"}
    hosts = [judged(name, mtu=mtu, kernel="6.1") for name, mtu in mtus.items()]
    rows = drift(
        hosts,
        {"training": ("gpu01", "gpu02", "gpu03"), "gpus": ("gpu01", "gpu02", "gpu03"), "dev": ("desk",)},
    )
    odd = [{"host": "gpu02", "value": "1500"}]
    assert rows == ({"group": "gpus", "what": "mtu", "majority": "9000", "odd": odd},)


def test_a_host_that_was_not_reached_or_tells_nothing_is_no_drift() -> None:
    hosts = [
        judged("gpu01", mtu="9000"),
        replace(judged("gpu02", mtu="1500"), unreached="no route"),
        judged("gpu03"),
    ]
    assert drift(hosts, {"training": ("gpu01", "gpu02", "gpu03")}) == ()


@pytest.mark.parametrize(
    ("groups", "found"), [(("all", "training"), "training"), (("all",), "test"), ((), "test")]
)
def test_hosts_are_laid_beside_those_of_their_group_or_profile(groups: tuple[str, ...], found: str) -> None:
    assert groups_of([managed("gpu01", *groups)]) == {found: ("gpu01",)}
