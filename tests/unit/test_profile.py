"""Profiles: layers in their order, and every wrong variable named before a host is touched."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import yaml

from provision.errors import Usage
from provision.profile import presets, repositories, settings
from provision.profile.compose import compose
from provision.profile.declared import declared
from provision.profile.inventory import Inventory
from provision.profile.tree import root

if TYPE_CHECKING:
    from pathlib import Path


def test_layers_win_in_their_order() -> None:
    layers = [{"nccl_interface": name} for name in ("eno1", "eno2", "eno3")]
    assert compose("p", {}, {}, {})["nccl_interface"] == declared()["nccl_interface"].default
    assert compose("p", layers[0], {}, {})["nccl_interface"] == "eno1"
    assert compose("p", layers[0], layers[1], {})["nccl_interface"] == "eno2"
    assert compose("p", *layers)["nccl_interface"] == "eno3"


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"nvidia_driver_brnch": 580}, "did you mean nvidia_driver_branch?"),
        ({"gpu_setting_clocks": "max"}, "did you mean gpu_settings_clocks?"),
        ({"nccl_nothing_like_it": 1}, "unknown variable nccl_nothing_like_it"),
        ({"nvidia_driver_modules": "closed"}, "nvidia_driver_modules"),
        ({"nvidia_driver_branch": "new"}, "nvidia_driver_branch"),
        ({"gpu_settings_clocks": "fast"}, "none, max, base"),
        ({"gpu_settings_clocks": {"graphics": "1410 MHz"}}, "whole number of MHz"),
        ({"gpu_settings_clocks": {"gfx": 1410}}, "gfx"),
        ({"gpu_settings_compute_mode": "exclusive"}, "exclusive_process"),
        ({"gpu_settings_persistence": "perhaps"}, "gpu_settings_persistence"),
        ({"nccl_variables": ["NCCL_DEBUG"]}, "nccl_variables"),
        ({"nvidia_driver_version": 535.10}, "in quotes"),
    ],
)
@pytest.mark.parametrize("layer", ["preset", "inventory", "settings"])
def test_a_wrong_variable_is_named(values: dict[str, object], says: str, layer: str) -> None:
    layers: dict[str, dict[str, object]] = {"preset": {}, "inventory": {}, "settings": {}, layer: values}
    with pytest.raises(Usage, match=r"variable|:") as caught:
        compose("mine", layers["preset"], layers["inventory"], layers["settings"])
    assert says in str(caught.value)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("firewall_allow", [80], "must be a list of mappings (port, proto, from, why), and 80 is none"),
        ("firewall_allow", [None], "and None is none"),
        ("firewall_allow", "ssh", "and 'ssh' is none"),
        ("firewall_allow", {"port": 80}, "must be a list, not {'port': 80}"),
        ("ssh_hardening_admins", ["ada"], "must be a list of mappings (name, keys, sudo), and 'ada' is none"),
        ("firewall_peers", [1], "must be a mapping, not [1]"),
        ("firewall_confirm_seconds", "soon", "must be a whole number, not 'soon'"),
        ("firewall_confirm_seconds", [1], "must be a whole number, not [1]"),
        ("firewall_managed", "mabye", "must be true or false, not 'mabye'"),
    ],
)
def test_a_wrong_type_is_told_in_words_of_yaml(name: str, value: object, says: str) -> None:
    with pytest.raises(Usage) as caught:
        compose("p", {}, {}, {name: value})
    assert says in str(caught.value)
    assert "class" not in str(caught.value)


def test_an_inventory_may_hold_variables_of_other_roles() -> None:
    compose("p", {}, {"ntp_server": "x", "ansible_user": "root"}, {})
    with pytest.raises(Usage):
        compose("p", {}, {}, {"ntp_server": "x"})


def test_argument_specs_and_defaults_say_the_same() -> None:
    for role in sorted((root() / "roles").iterdir()):
        defaults = yaml.safe_load((role / "defaults" / "main.yml").read_text()) or {}
        documented = {n: v.default for n, v in declared().items() if v.role == role.name}
        assert {k: v for k, v in defaults.items() if v is not None} == {
            k: v for k, v in documented.items() if v is not None
        }, role.name


@pytest.mark.parametrize("name", ["dev", "inference", "rendering", "research", "training"])
def test_presets_are_valid(name: str) -> None:
    assert name in presets.names()
    compose(*presets.load(name), {}, {})


def test_an_unknown_preset_names_the_nearest() -> None:
    with pytest.raises(Usage, match="did you mean training"):
        presets.load("trainig")


@pytest.mark.parametrize(
    ("text", "says"),
    [("a: [1", r"line \d, column \d"), ("- a\n- b\n", "mapping"), ("a: b: c\n", "line 1, column 5")],
)
def test_a_broken_profile_file_says_where(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "mine.yml").write_text(text)
    with pytest.raises(Usage, match=says):
        presets.load(str(tmp_path / "mine.yml"))


def test_settings_are_yaml_and_may_come_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "v.yml").write_text("{NCCL_DEBUG: WARN}")
    parsed = settings.parse(["a=[1, x]", f"b=@{tmp_path / 'v.yml'}", "c=", "d=k=v"])
    assert parsed == {"a": [1, "x"], "b": {"NCCL_DEBUG": "WARN"}, "c": None, "d": "k=v"}


def test_a_key_keeps_its_lines(tmp_path: Path) -> None:
    begin, end = (f"-----{word} PGP PUBLIC KEY BLOCK-----" for word in ("BEGIN", "END"))
    key = f"{begin}\nVersion: x: y\n\nmQEN\nBGkt\n{end}\n"
    (tmp_path / "key.asc").write_text(key)
    assert settings.parse([f"a=@{tmp_path / 'key.asc'}"]) == {"a": key}
    folded = " ".join(key.split())
    assert repositories.public_key(key) is None
    assert "lost its lines" in str(repositories.public_key(folded))


@pytest.mark.parametrize("text", ["novalue", "=1", "a=[1", "a=@/no/such/file"])
def test_a_setting_that_is_none(text: str) -> None:
    with pytest.raises(Usage):
        settings.parse([text])


@pytest.fixture
def inventory(tmp_path: Path) -> Path:
    (tmp_path / "group_vars").mkdir()
    (tmp_path / "hosts.yml").write_text(
        "gpus:\n  hosts:\n    a: {ansible_host: 192.0.2.1, nic: eth9, nccl_interface: '{{ nic }}'}\n    b:\n"
    )
    return tmp_path / "hosts.yml"


def test_inventory_templates_are_resolved(inventory: Path) -> None:
    host = Inventory(str(inventory)).hosts("a")[0]
    assert host.variables["nccl_interface"] == "eth9"
    assert "gpus" in host.groups


def kinds(value: object) -> set[type]:
    """The exact types in a value, however deep."""
    if isinstance(value, dict):
        return {type(value)} | {kind for pair in value.items() for part in pair for kind in kinds(part)}
    if isinstance(value, list | tuple):
        return {type(value)} | {kind for part in value for kind in kinds(part)}
    return {type(value)}


def test_what_an_inventory_says_is_plain_python_with_nothing_of_ansibles(tmp_path: Path) -> None:
    (tmp_path / "hosts.yml").write_text(
        "nodes:\n  hosts: {a: {ansible_host: 192.0.2.1, ansible_port: 22}}\n"
        "  vars: {firewall_allow: [{port: 80, proto: tcp, from: [nodes]}], ssh_hardening_old_clients: true}\n"
    )
    for name in ("a", "nodes"):
        [host] = Inventory(str(tmp_path / "hosts.yml")).hosts(name)
        assert kinds([host.name, list(host.groups), dict(host.variables)]) == {str, int, bool, list, dict}
        assert host.variables["firewall_allow"] == [{"port": 80, "proto": "tcp", "from": ["nodes"]}]
        assert host.variables["ssh_hardening_old_clients"] is True


def test_a_users_ansible_settings_do_not_change_what_is_read(
    inventory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANSIBLE_CONFIG", "/no/such/ansible.cfg")
    monkeypatch.setenv("ANSIBLE_INVENTORY_ENABLED", "host_list")
    assert [h.name for h in Inventory(str(inventory)).hosts("gpus")] == ["a", "b"]


def test_vault_files_are_read_and_their_absence_is_told(inventory: Path, tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text("open\n")
    secret = tmp_path / "group_vars" / "gpus.yml"
    secret.write_text("ansible_become_password: s3cret\n")
    encrypt = [sys.executable, "-m", "ansible", "vault", "encrypt", "--vault-password-file", password, secret]
    subprocess.run(encrypt, check=True, capture_output=True)
    read = Inventory(str(inventory), str(password)).hosts("b")[0]
    assert read.variables["ansible_become_password"] == "s3cret"
    with pytest.raises(Usage, match="--vault-password-file"):
        Inventory(str(inventory)).hosts("b")


def test_single_values_are_decrypted(inventory: Path, tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text("open\n")
    encrypt = [sys.executable, "-m", "ansible", "vault", "encrypt_string", "--vault-password-file", password]
    said = subprocess.run([*encrypt, "s3cret"], check=True, capture_output=True, text=True).stdout
    (tmp_path / "group_vars" / "gpus.yml").write_text(f"ansible_become_password: {said}")
    read = Inventory(str(inventory), str(password)).hosts("b")[0]
    assert read.variables["ansible_become_password"] == "s3cret"
    with pytest.raises(Usage, match="--vault-password-file"):
        Inventory(str(inventory)).hosts("b")


def test_every_default_passes_the_roles_own_check() -> None:
    """Ansible checks a default as any value: nothing at all is none of a list of choices."""
    from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

    for name, variable in declared().items():
        spec = {k: v for k, v in variable.spec.items() if k in ("type", "elements", "choices")}
        told = ArgumentSpecValidator({name: spec}).validate({name: variable.default}).error_messages
        assert not told, told
