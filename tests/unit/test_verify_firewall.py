"""Ports tried from outside: which are chosen, how each has to look, and a listener that is asked for real."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from firewall_hosts import THEIRS, UFW, UFW_RULES, heard, host, loaded, profile

from provision.verify import outside
from provision.verify.listener import PROGRAM
from provision.verify.ports import SPARE, Ports, exempted, ports

if TYPE_CHECKING:
    from collections.abc import Iterator

ME = "198.51.100.7"
TOKEN = "c0ffee"
UFW_LOADED = loaded("table ip filter {\n\tchain ufw-user-input {\n\t}\n}\n")


def entry(port: object, *sources: str, proto: str = "tcp") -> dict[str, Any]:
    return {"port": port, "proto": proto, **({"from": list(sources)} if sources else {})}


def chosen(*entries: dict[str, Any], sockets: Any = None, **more: Any) -> Ports:
    return ports(host(sockets=sockets), profile(firewall_allow=list(entries), **more))


def test_what_others_may_reach_is_shut_for_us() -> None:
    found = chosen(
        entry(8000), entry(8001, "192.0.2.0/24"), entry(8002, "198.51.100.0/24"), entry(7000, proto="udp")
    )
    assert found.open_for(ME) == ("tcp:8000", "tcp:8002", "udp:7000")
    assert set(found.shut_for(ME)) == {*found.spare, "tcp:8001"}
    assert found.open_for("2001:db8::1") == ("tcp:8000", "udp:7000")


def test_a_port_that_two_entries_name_is_open_for_both() -> None:
    found = chosen(entry(8000, "192.0.2.1"), entry("7990-8010", ME))
    assert "tcp:8000" in found.open_for(ME)
    assert "tcp:8000" in found.open_for("192.0.2.1")


def test_a_served_port_of_a_range_is_preferred_and_keeps_its_families() -> None:
    found = chosen(entry("8000-8010"), sockets=heard(("tcp", 8005, "python3")))
    assert found.named == ("tcp:8005",)
    assert found.served == {"tcp:8005": frozenset({4})}
    assert "tcp:8005" not in found.unserved


def test_a_port_used_by_somebody_who_cannot_be_reached_is_not_taken_from_a_range() -> None:
    local = [{"proto": "tcp", "address": "127.0.0.1", "port": 8000, "program": "x", "unit": None}]
    found = chosen(entry("8000-8001"), sockets=[*heard(), *local])
    assert found.named == ("tcp:8001",)
    assert found.served == {}


def test_spare_ports_are_nobodys() -> None:
    whole = chosen(entry(f"{SPARE[0]}-{SPARE[-1] - 3}"), sockets=heard(("udp", SPARE[-1], "x")))
    left = {port for port in SPARE if port > SPARE[-1] - 3} - {SPARE[-1]}
    assert {int(name.partition(":")[2]) for name in whole.spare} == left
    assert {name.partition(":")[0] for name in whole.spare} == {"tcp", "udp"}


def ufw(rule: str) -> Any:
    theirs = f"### tuple ### {rule}\n-A ufw-user-input -j ACCEPT\n\n" + THEIRS.format(six="", any="0.0.0.0/0")
    rules = {"text": UFW_RULES.format(six="", theirs=theirs)}
    return host(items={**UFW, **UFW_LOADED, "file:/etc/ufw/user.rules": rules})


def test_ports_that_others_gave_to_ufw_are_not_spare() -> None:
    facts = ufw(f"allow tcp {SPARE[0]}:{SPARE[-1] - 1} 0.0.0.0/0 any 0.0.0.0/0 in")
    assert set(ports(facts, profile()).spare) == {f"tcp:{SPARE[-1]}", f"udp:{SPARE[-1]}"}


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        ("allow any any 0.0.0.0/0 any 198.51.100.0/24 in", "a rule of others in ufw"),
        ("limit_log any any 0.0.0.0/0 any 198.51.100.7 in", "a rule of others in ufw"),
        ("allow any any 0.0.0.0/0 any 192.0.2.1 in", None),
        ("allow tcp 22 0.0.0.0/0 any 198.51.100.7 in", None),
        ("deny any any 0.0.0.0/0 any 198.51.100.7 in", None),
    ],
)
def test_whom_others_let_in_everywhere_shows_nothing(rule: str, reason: str | None) -> None:
    said = exempted(ufw(rule), profile(), "192.0.2.9", ME)
    assert (said or "").startswith(reason or "") if reason else said is None


def test_an_interface_that_lets_everything_in_shows_nothing() -> None:
    link = {"ifname": "wg0", "flags": ["UP"], "operstate": "UP", "mtu": 1420, "address": "", "addr_info": [
        {"family": "inet", "local": "10.9.0.1", "prefixlen": 24, "scope": "global"}]}  # fmt: skip
    items = {
        "ip.addresses": {"rc": 0, "stdout": json.dumps([link])},
        "ip.links": {"rc": 0, "stdout": json.dumps([link])},
        "net": {"rc": 0, "stdout": "[]"},
    }
    facts = host(items=items)
    exempt = profile(firewall_interfaces=["wg*"])
    assert "wg0" in (exempted(facts, exempt, "10.9.0.1", "10.9.0.2") or "")
    assert exempted(facts, exempt, "192.0.2.9", "10.9.0.2") is None
    assert exempted(facts, profile(), "10.9.0.1", "10.9.0.2") is None
    assert "itself" in (exempted(facts, profile(), "192.0.2.9", "192.0.2.9") or "")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def answering(*specs: str) -> Iterator[dict[str, Any]]:
    argv = [sys.executable, "-c", PROGRAM.read_text(), TOKEN, "30", *specs]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout
        yield json.loads(process.stdout.readline())
        process.communicate(timeout=10)
        assert process.returncode == 0, "it ends with its standard input"


@pytest.mark.parametrize("proto", ["tcp", "udp"])
@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_a_listener_is_known_by_its_token(proto: str, address: str) -> None:
    spec = f"{proto}:{free_port()}"
    with answering(spec) as said:
        assert said["ports"] == {spec: None}
        assert outside.opens(address, spec, TOKEN)
        assert outside.opens(address, spec, TOKEN), "and again"
        assert not outside.opens(address, spec, "another"), "what answers in its place is not it"
    assert not outside.opens(address, spec, TOKEN)


def test_a_port_that_somebody_has_is_told_and_the_others_are_had() -> None:
    spec = f"tcp:{free_port()}"
    with socket.create_server(("127.0.0.1", 0)) as server:
        taken = f"tcp:{server.getsockname()[1]}"
        with answering(taken, spec) as said:
            assert said["ports"][spec] is None
            assert "in use" in said["ports"][taken]
            assert outside.opens("127.0.0.1", taken, None), "a service of the host's own needs no token"
