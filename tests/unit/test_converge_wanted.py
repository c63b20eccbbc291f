"""The lookup wanted in a plain playbook: the same answer as the planner gives the controls."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

from provision.converge import HostVars, Outcome, converge
from provision.facts import Facts
from provision.facts.known import Unknown
from provision.planners import nccl
from provision.profile.declared import declared
from provision.profile.model import Profile
from provision.recording.model import Recording

if TYPE_CHECKING:
    from pathlib import Path

KEPT = "# {{ not a template }}\nNCCL_DEBUG=WARN\n"
RECORDING = Recording(
    "h",
    "2026-11-30T12:00:00Z",
    True,
    0.1,
    {
        "file:/etc/nccl.conf": {"text": KEPT, "mode": "0644", "owner": "root"},
        "ip.addresses": {
            "rc": 0,
            "stdout": json.dumps(
                [
                    {
                        "ifname": "eth7",
                        "operstate": "UP",
                        "flags": ["UP", "LOWER_UP"],
                        "addr_info": [
                            {"family": "inet", "local": "10.0.0.3", "prefixlen": 24, "scope": "global"}
                        ],
                    }
                ]
            ),
            "stderr": "",
        },
        "ip.links": {
            "rc": 0,
            "stdout": json.dumps([{"ifname": "eth7", "operstate": "UP", "link_type": "ether", "mtu": 9000}]),
            "stderr": "",
        },
        "rdma": {"rc": 0, "stdout": "[]", "stderr": ""},
    },
)

PLAY = """
- hosts: all
  gather_facts: false
  tasks:
    - name: Ask
      ansible.builtin.copy:
        content: "{{ lookup('gpu_provision.host.wanted', role) | to_json }}"
        dest: "{{ out }}"
        mode: "0600"
"""


def asked(tmp_path: Path, variables: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """What each host of a play got from the lookup, or the message of its failure."""
    playbook = tmp_path / "ask.yml"
    playbook.write_text(PLAY)
    local = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    stack = {"unknown": "no GPU on the bus"}
    hosts = {
        name: HostVars(
            name, (), {**local, "gpu_provision_stack": stack, "out": str(tmp_path / name), **given}
        )
        for name, given in variables.items()
    }
    result = converge(hosts, tmp_path / "run", playbook=str(playbook))
    return {
        name: json.loads((tmp_path / name).read_text()) if host.outcome is Outcome.DONE else host.message
        for name, host in result.hosts.items()
    }


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    recording = {"gpu_provision_recording": RECORDING.as_dict()}
    odd = {"gpu_provision_recording": {"schema": "gpu-provision/recording/9"}}
    return asked(
        tmp_path_factory.mktemp("wanted"),
        {
            "defaults": {"role": "nccl", **recording},
            "chosen": {"role": "nccl", **recording, "nccl_variables": {"NCCL_ALGO": "Ring"}},
            "unseen": {"role": "nccl"},
            "odd": {"role": "nccl", **odd},
            "nobody": {"role": "no_such_role", **recording},
        },
    )


def planned(**chosen: Any) -> dict[str, Any]:
    variables = {name: v.default for name, v in declared().items()} | chosen
    profile = Profile("playbook", variables, chosen)
    wanted: dict[str, Any] = json.loads(
        json.dumps(nccl.wanted(Facts(RECORDING), profile, Unknown("no GPU on the bus")).as_dict())
    )
    return wanted


def test_the_answer_is_the_planners_own(answers: dict[str, Any]) -> None:
    assert answers["defaults"] == planned()
    assert answers["defaults"]["refused"] is None


def test_text_of_a_host_that_looks_like_a_template_is_kept(answers: dict[str, Any]) -> None:
    assert "{{ not a template }}" in answers["defaults"]["files"][0]["text"]


def test_the_hosts_own_variables_count(answers: dict[str, Any]) -> None:
    assert answers["chosen"] == planned(nccl_variables={"NCCL_ALGO": "Ring"})
    assert answers["chosen"] != answers["defaults"]


def test_what_is_missing_is_named(answers: dict[str, Any]) -> None:
    assert "run the task `gpu_provision.host.recording:` first" in answers["unseen"]
    assert "schema is 'gpu-provision/recording/9'" in answers["odd"]
    assert "'no_such_role'" in answers["nobody"]
