"""The lookup stack in a plain playbook: the command's document where it is given, else the resolver's."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest
from test_catalog_host import facts, policy

from provision.converge import HostVars, Outcome, converge

if TYPE_CHECKING:
    from pathlib import Path

PLAY = """
- hosts: all
  gather_facts: false
  tasks:
    - name: Ask
      ansible.builtin.copy:
        content: "{{ lookup('gpu_provision.host.stack') | to_json }}"
        dest: "{{ out }}"
        mode: "0600"
"""


def asked(tmp_path: Path, hosts: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """What each host of a play got from the lookup, or the message of its failure."""
    playbook = tmp_path / "ask.yml"
    playbook.write_text(PLAY, encoding="utf-8")
    local = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    given = {
        name: HostVars(name, (), {**local, "out": str(tmp_path / name), **variables})
        for name, variables in hosts.items()
    }
    result = converge(given, tmp_path / "run", playbook=str(playbook))
    return {
        name: json.loads((tmp_path / name).read_text(encoding="utf-8"))
        if host.outcome is Outcome.DONE
        else str(host.message)
        for name, host in result.hosts.items()
    }


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    def recording(*arguments: Any, **more: Any) -> dict[str, Any]:
        return facts(*arguments, **more).recording.as_dict()

    return asked(
        tmp_path_factory.mktemp("lookup"),
        {
            "given": {"gpu_provision_stack": {"schema": "gpu-provision/stack/1", "satisfiable": True}},
            "resolved": {
                "gpu_provision_recording": recording("trixie", ["2330"], policy_text=policy("trixie")),
                "nvidia_driver_source": "debian",
            },
            "unknown": {"gpu_provision_recording": recording("trixie", ["ffff"])},
            "bare": {},
        },
    )


def test_the_commands_document_is_handed_on(answers: dict[str, Any]) -> None:
    assert answers["given"] == {"schema": "gpu-provision/stack/1", "satisfiable": True}


def test_else_the_recording_is_resolved(answers: dict[str, Any]) -> None:
    driver = answers["resolved"]["driver"]
    assert (driver["version"], driver["modules"], driver["source"]) == ("550.163.01", "proprietary", "debian")


def test_what_cannot_be_told_says_why(answers: dict[str, Any]) -> None:
    assert list(answers["unknown"]) == ["unknown"]
    assert "newer than the catalog" in answers["unknown"]["unknown"]


def test_without_a_recording_it_says_what_to_run(answers: dict[str, Any]) -> None:
    assert "gpu_provision.host.recording" in answers["bare"]
