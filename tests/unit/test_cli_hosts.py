"""HOST arguments: addresses, inventories and options become targets, or an error that names what is wrong."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from provision.cli.hosts import resolve_hosts
from provision.cli.options import HostOptions
from provision.errors import Usage
from provision.transport.explain import explain
from provision.transport.target import Target

if TYPE_CHECKING:
    from pathlib import Path


def options(**given: Any) -> HostOptions:
    plain: dict[str, Any] = {
        "inventory": None,
        "profile": None,
        "settings": (),
        "accept_new": False,
        "host_key": None,
        "forks": 5,
        "password_fd": None,
        "become_password_fd": None,
        "ask_become_pass": False,
        "vault_password_file": None,
    }
    return HostOptions(**{**plain, **given})


@pytest.mark.parametrize(
    ("text", "user", "address", "port"),
    [
        ("gpu01.example.org", None, "gpu01.example.org", None),
        ("root@192.0.2.7", "root", "192.0.2.7", None),
        ("admin@gpu.example.org:2222", "admin", "gpu.example.org", 2222),
        ("[2001:db8::7]:2222", None, "2001:db8::7", 2222),
        ("root@[2001:db8::7]", "root", "2001:db8::7", None),
        ("root@2001:db8::7", "root", "2001:db8::7", None),
        ("my_alias", None, "my_alias", None),
        ("user@realm@host", "user@realm", "host", None),
    ],
)
def test_addresses(text: str, user: str | None, address: str, port: int | None) -> None:
    target = resolve_hosts([text], options())[0].target
    assert (target.user, target.address, target.port) == (user, address, port)
    assert target.name == text


@pytest.mark.parametrize(
    "text",
    ["", "root@", "host:99999", "host:0", "192.0.2.1:abc", "-oProxyCommand=touch /tmp/x", "a b", "[::1"],
)
def test_what_is_no_host(text: str) -> None:
    with pytest.raises(Usage):
        resolve_hosts([text], options())


def test_local_is_this_machine() -> None:
    assert resolve_hosts(["local"], options())[0].target.local


def test_a_host_named_twice_is_one() -> None:
    assert len(resolve_hosts(["a", "b", "a"], options())) == 2


@pytest.fixture
def inventory(tmp_path: Path) -> str:
    (tmp_path / "hosts.yml").write_text(
        """
training:
  hosts:
    one: {ansible_host: 192.0.2.1, ansible_port: 2022, ansible_user: root}
    two:
      ansible_host: 192.0.2.2
      nccl_interface: eno7
      ansible_ssh_common_args: -J jump@bastion -o StrictHostKeyChecking=yes -oServerAliveInterval=9
      ansible_become_password: s3cret
odd:
  hosts:
    three: {ansible_ssh_common_args: --weird}
empty:
  hosts: {}
"""
    )
    return str(tmp_path / "hosts.yml")


def test_a_group_is_its_hosts_with_the_preset_of_its_name(inventory: str) -> None:
    one, two = resolve_hosts(["training"], options(inventory=inventory))
    assert (one.target.address, one.target.port, one.target.user) == ("192.0.2.1", 2022, "root")
    assert one.profile.name == "training"
    assert one.profile["gpu_settings_clocks"] == "base"
    assert two.profile["nccl_interface"] == "eno7"
    assert two.target.options == (
        "ProxyJump=jump@bastion",
        "StrictHostKeyChecking=yes",
        "ServerAliveInterval=9",
    )
    assert two.secrets.sudo == "s3cret"
    assert "s3cret" not in repr(two)


def test_the_inventory_comes_before_an_address_and_options_before_both(inventory: str) -> None:
    found = resolve_hosts(
        ["one"], options(inventory=inventory, profile="dev", settings=("nccl_interface=eno1",))
    )
    assert found[0].profile.name == "dev"
    assert found[0].profile["nccl_interface"] == "eno1"


@pytest.mark.parametrize(("name", "says"), [("empty", "no hosts"), ("three", "--weird")])
def test_what_an_inventory_must_not_hold(inventory: str, name: str, says: str) -> None:
    with pytest.raises(Usage, match=says):
        resolve_hosts([name], options(inventory=inventory))


def test_a_missing_inventory_is_named() -> None:
    with pytest.raises(Usage, match="/no/such/inventory"):
        resolve_hosts(["a"], options(inventory="/no/such/inventory"))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("all:\n  hosts:\n    x:\n   y: [\n", "line 4, column 4"),
        ("x: {hosts: {x: {ansible_port: ssh}}}", "no port"),
    ],
)
def test_a_broken_inventory_is_no_inventory(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "hosts.yml"
    file.write_text(text)
    with pytest.raises(Usage, match=says):
        resolve_hosts(["x"], options(inventory=str(file)))


def test_passwords_come_from_descriptors() -> None:
    read, write = os.pipe()
    os.write(write, b"pa ss\nmore\n")
    os.close(write)
    host = resolve_hosts(["a"], options(become_password_fd=read))[0]
    os.close(read)
    assert host.secrets.sudo == "pa ss"


def test_a_descriptor_that_is_not_open() -> None:
    with pytest.raises(Usage, match="--password-fd 987"):
        resolve_hosts(["a"], options(password_fd=987))


def test_a_misspelt_name_is_told_from_a_fault_of_dns(inventory: str) -> None:
    target = resolve_hosts(["trainin"], options(inventory=inventory))[0].target
    failure = explain("ssh: Could not resolve hostname trainin: Name or service not known\n", target)
    assert "no host or group of the inventory" in failure.says
    assert "no lab host is called trainin" in failure.says
    assert "did you mean training?" in (failure.do or "")
    plain = resolve_hosts(["gpu01.example.org"], options(inventory=inventory))[0].target
    assert plain.unlisted == plain.meant == ""


def test_a_vault_password_without_an_inventory_is_refused() -> None:
    with pytest.raises(Usage, match="no inventory is given"):
        resolve_hosts(["a"], options(vault_password_file="/tmp/secret"))


def test_a_lab_host_has_to_have_the_key_that_was_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("provision.cli.hosts._from_lab", lambda name: Target(name, "192.0.2.9"))
    assert resolve_hosts(["lab1"], options(host_key="SHA256:x"))[0].target.host_key == "SHA256:x"
