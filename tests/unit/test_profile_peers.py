"""Groups that the firewall's variables name become addresses, from whatever inventory there is."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

import pytest

from provision.errors import Usage
from provision.profile.compose import compose
from provision.profile.inventory import Inventory
from provision.profile.peers import with_peers

if TYPE_CHECKING:
    from pathlib import Path

    from provision.profile.model import Profile

HOSTS = """
all:
  children:
    nodes:
      hosts:
        gpu01: {ansible_host: 192.0.2.11}
        gpu02: {ansible_host: "2001:db8::2"}
        192.0.2.13: {}
    named:
      hosts:
        gpu04: {ansible_host: gpu04.example}
    empty: {}
"""


@pytest.fixture
def inventory(tmp_path: Path) -> Inventory:
    (tmp_path / "hosts.yml").write_text(HOSTS)
    return Inventory(str(tmp_path / "hosts.yml"))


def profile(**variables: Any) -> Profile:
    return compose("test", {}, {}, variables)


def told(found: Profile) -> Any:
    return found["firewall_peers"]


def test_a_group_and_a_host_become_addresses(inventory: Inventory) -> None:
    asked = profile(
        firewall_allow=[{"port": 1, "from": ["nodes", "10.0.0.0/8"]}], firewall_ssh_unlimited=["gpu01"]
    )
    found = told(with_peers(asked, inventory))
    assert found == {"nodes": ["192.0.2.11", "192.0.2.13", "2001:db8::2"], "gpu01": ["192.0.2.11"]}


def test_the_profiles_own_word_comes_first(inventory: Inventory) -> None:
    asked = profile(firewall_cluster_peers=["nodes"], firewall_peers={"nodes": ["10.1.0.0/16"]})
    assert told(with_peers(asked, inventory)) == {"nodes": ["10.1.0.0/16"]}


def test_nothing_is_looked_up_that_nobody_names(
    inventory: Inventory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: pytest.fail("looked up"))
    assert told(with_peers(profile(firewall_cluster_peers=["nodes"]), inventory))
    assert told(with_peers(profile(), inventory)) == {}


def test_a_name_is_looked_up_and_one_that_is_not_found_is_an_error(
    inventory: Inventory, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = profile(firewall_ssh_from=["named"])

    def found(*_: Any, **__: Any) -> list[Any]:
        return [(0, 0, 0, "", (ip, 0)) for ip in ("198.51.100.4", "198.51.100.4", "2001:db8::4")]

    def lost(*_: Any, **__: Any) -> list[Any]:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", found)
    assert told(with_peers(asked, inventory)) == {"named": ["198.51.100.4", "2001:db8::4"]}
    monkeypatch.setattr(socket, "getaddrinfo", lost)
    with pytest.raises(Usage, match=r"gpu04\.example: Name or service not known"):
        with_peers(asked, inventory)


def test_a_name_that_means_nothing_is_an_error_with_the_right_one(inventory: Inventory) -> None:
    with pytest.raises(Usage, match="did you mean nodes"):
        with_peers(profile(firewall_cluster_peers=["node"]), inventory)
    with pytest.raises(Usage, match="give the inventory"):
        with_peers(profile(firewall_cluster_peers=["nodes"]), None)


def test_a_presets_group_is_always_there() -> None:
    assert told(with_peers(profile(firewall_cluster_peers=["training"]), None)) == {}
    assert told(with_peers(profile(), None)) == {}


@pytest.mark.parametrize(
    ("variables", "says"),
    [
        ({"firewall_allow": [{"port": "8000-"}]}, "is no port"),
        ({"firewall_allow": [{"port": True}]}, "is no port"),
        ({"firewall_allow": [{"port": 1, "from": ["a b"]}]}, "neither a network nor"),
        ({"firewall_allow": [{"port": 1, "from": []}]}, "names nobody; leave it out"),
        ({"firewall_allow": [{"port": 1, "from": None}]}, "names nobody; leave it out"),
        ({"firewall_allow": [{"port": 1, "proto": "sctp"}]}, "proto"),
        ({"firewall_peers": {"n": "10.0.0.1"}}, "must be a list"),
        ({"firewall_cluster_traffic": ["mpi"]}, "mpi"),
        ({"firewall_docker_published": "shut"}, "shut"),
        ({"firewall_stop": ["a b"]}, "no name of a service"),
        ({"firewall_alow": []}, "did you mean firewall_allow"),
    ],
)
def test_wrong_values_are_named_before_a_host_is_touched(variables: dict[str, Any], says: str) -> None:
    with pytest.raises(Usage, match=says):
        profile(**variables)
