"""What Ansible is given: inventory, secrets, settings, environment, and the way to a host."""

from __future__ import annotations

import configparser
import stat
import sys
from pathlib import Path

import pytest
import yaml
from ansible.module_utils.basic import _PY_MIN

from provision.converge import HostVars, connection, inventory, minimum_python, settings, with_become_password
from provision.profile import tree
from provision.transport.target import Target


def test_plain_names_stay_and_others_get_a_name_that_ansible_takes_literally() -> None:
    names = [
        "gpu01",
        "root@10.0.0.3",
        "root@[fe80::1]:22",
        "all",
        "10.0.0.3",
        "gpu[1:3]",
        "gpu-1-3",
        "root-10.0.0.3",
    ]
    made = inventory.aliases(names)
    assert list(made) == names
    assert len(set(made.values())) == len(names)
    assert {n: made[n] for n in ("gpu01", "10.0.0.3", "gpu-1-3")} == {
        n: n for n in ("gpu01", "10.0.0.3", "gpu-1-3")
    }
    assert all(
        inventory.PLAIN_NAME.fullmatch(alias) and alias not in inventory.RESERVED for alias in made.values()
    )


def test_two_names_that_would_get_the_same_alias_do_not() -> None:
    made = inventory.aliases(["a@b", "a:b", "host-a-b"])
    assert sorted(made.values()) == ["host-a-b", "host-a-b-2", "host-a-b-3"]


def test_an_inventory_keeps_values_and_marks_what_looks_like_a_template(tmp_path: Path) -> None:
    file = tmp_path / "inventory.yml"
    inventory.write(file, {"gpu01": {"a": "{{ x }}", "b": ["{% y %}", "plain"], "c": {"d": (1, True, None)}}})
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    text = file.read_text()
    assert text.count("!unsafe") == 2
    read = yaml.safe_load(text.replace("!unsafe ", ""))
    assert read == {
        "all": {"hosts": {"gpu01": {"a": "{{ x }}", "b": ["{% y %}", "plain"], "c": {"d": [1, True, None]}}}}
    }


def test_a_become_password_is_a_secret_and_shows_in_no_repr() -> None:
    host = with_become_password(HostVars("h", ("nccl",), {"a": 1}), "s3cret")
    assert host.secrets == {"ansible_become_password": "s3cret"}
    assert "s3cret" not in repr(host)
    assert "s3cret" not in str(inventory.variables_of(host))
    assert with_become_password(host, None) is host


def test_the_environment_takes_over_nothing_of_the_users_ansible(tmp_path: Path) -> None:
    given = {
        "PATH": "/bin",
        "HOME": "/home/u",
        "https_proxy": "http://proxy:3128",
        "SSH_AUTH_SOCK": "/run/agent",
        "LANG": "de_DE.ISO-8859-1",
        "ANSIBLE_REMOTE_USER": "nobody",
        "ANSIBLE_CONFIG": "/home/u/ansible.cfg",
        "ANSIBLE_STDOUT_CALLBACK": "minimal",
        "PYTHONPATH": "/home/u/lib",
    }
    env = settings.environment(tmp_path, given)
    kept = {k: v for k, v in env.items() if k in given and env[k] == given[k]}
    assert set(kept) == {"PATH", "HOME", "https_proxy", "SSH_AUTH_SOCK"}
    assert env["ANSIBLE_CONFIG"] == str(tmp_path / "ansible.cfg")
    assert env["ANSIBLE_HOME"].startswith(str(tmp_path))
    assert {k for k in env if k.startswith("ANSIBLE")} == {"ANSIBLE_CONFIG", "ANSIBLE_HOME"}
    assert env["LC_ALL"].endswith("UTF-8")


def test_settings_lead_to_this_collection_and_may_be_written_twice(tmp_path: Path) -> None:
    settings.write(tmp_path, forks=5)
    settings.write(tmp_path, forks=7)
    config = configparser.ConfigParser(interpolation=None)
    config.read(tmp_path / "ansible.cfg")
    assert config["defaults"]["forks"] == "7"
    found = Path(config["defaults"]["collections_path"]) / "ansible_collections" / tree.NAMESPACE / tree.NAME
    assert found.resolve() == tree.root()


def test_the_minimum_python_is_what_ansible_itself_asks_for() -> None:
    assert minimum_python() == _PY_MIN


def test_the_way_to_a_host_uses_the_open_session(tmp_path: Path) -> None:
    target = Target("gpu01", "10.0.0.3", user="ubuntu", port=2222, identity="/k")
    options = ["-o", "StrictHostKeyChecking=yes", "-o", "ProxyCommand=nc -x p:1 %h %p"]
    found = connection(target, python="/usr/bin/python3", control_path=tmp_path / "c", options=options)
    assert found["ansible_host"] == "10.0.0.3"
    assert (found["ansible_user"], found["ansible_port"]) == ("ubuntu", 2222)
    assert found["ansible_ssh_private_key_file"] == "/k"
    assert f"ControlPath={tmp_path / 'c'}" in found["ansible_ssh_args"]
    assert "ControlMaster=no" in found["ansible_ssh_args"]
    assert "'ProxyCommand=nc -x p:1 %h %p'" in found["ansible_ssh_common_args"]
    assert "ansible_become" not in found


def test_root_needs_no_sudo_and_an_alias_of_ssh_config_no_more_than_its_name() -> None:
    found = connection(Target("gpu01", "gpu01"), python="/usr/bin/python3", login_is_root=True)
    assert found["ansible_become"] is False
    assert "ControlPath=none" in found["ansible_ssh_args"]
    assert not {"ansible_user", "ansible_port", "ansible_ssh_private_key_file"} & set(found)


def test_this_machine_is_reached_without_ssh() -> None:
    found = connection(Target("local", "local", local=True), python=sys.executable)
    assert found == {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}


def test_the_order_of_roles_is_that_of_the_site_playbook() -> None:
    play = yaml.safe_load((tree.root() / "playbooks" / "site.yml").read_text())[0]
    order = tree.role_order()
    assert [f"{tree.NAMESPACE}.{tree.NAME}.{role}" for role in order] == [
        entry["role"] for entry in play["roles"]
    ]
    assert len(set(order)) == len(order)


@pytest.mark.parametrize("role", tree.role_order())
def test_each_role_of_the_site_playbook_can_be_chosen_by_tag_and_by_host(role: str) -> None:
    play = yaml.safe_load((tree.root() / "playbooks" / "site.yml").read_text())[0]
    entry = play["roles"][tree.role_order().index(role)]
    assert entry["tags"] == [role]
    assert entry["when"] == f"'{role}' in (gpu_provision_roles | default(['{role}']))"
