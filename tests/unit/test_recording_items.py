"""The questions: every name that the contract fixes, and every file that a planner writes."""

from __future__ import annotations

import ast
import fnmatch
import json
import re
from pathlib import Path

import pytest

import provision
from provision.recording.collect.answers import BUILTINS
from provision.recording.collect.conditions import WHEN
from provision.recording.items import FILES, GLOBS, ITEMS, Item, questions
from provision.recording.names import words

FIXED = words("""
    nvidia-smi.query nvidia-smi.topology nvidia-smi.list nvidia-smi.nvlink lspci pci dmesg os-release uname
    python virtualization secure-boot lsmod modinfo.nvidia dkms.status kernels dpkg.list rpm.list apt.holds
    apt.policy apt.history sshd.effective sshd.files accounts lsblk findmnt blkid mdstat nvme.smart
    ip.addresses ip.links rdma sockets firewall docker.info docker.unit cdi units cpu memory limits sysctl
    time file:/etc/fstab file:/etc/docker/daemon.json file:/etc/nccl.conf file:/proc/driver/nvidia/version
    file:/sys/module/nvidia/version file:/etc/apt/sources.list file:/etc/apt/apt.conf.d/20auto-upgrades
    file:/etc/apt/apt.conf.d/50unattended-upgrades
""")
PLANNERS = sorted((Path(provision.__file__).parent / "planners").glob("*.py"))


def by_name() -> dict[str, Item]:
    return {item.name: item for item in ITEMS}


def test_every_name_of_the_contract_is_asked() -> None:
    # The collector itself answers `python`.
    assert set(FIXED) - {"python"} <= set(by_name())


def test_names_are_unique_and_each_is_one_kind_of_question() -> None:
    assert len(by_name()) == len(ITEMS)
    for item in ITEMS:
        assert sum(map(bool, (item.argv, item.builtin, item.glob))) == 1, item.name
        assert not item.builtin or item.builtin in BUILTINS, item.name
        assert not item.when or item.when in WHEN, item.name
        assert 0 < item.seconds <= 20, item.name


def test_the_questions_of_the_contract_are_asked_in_its_words() -> None:
    asked = {name: " ".join(item.argv) for name, item in by_name().items() if item.argv}
    assert asked["nvidia-smi.query"] == "nvidia-smi -q -x"
    assert asked["nvidia-smi.topology"] == "nvidia-smi topo -m"
    assert asked["lspci"] == "lspci -Dnnk"
    assert asked["lsblk"] == "lsblk -J -b -O"
    assert asked["docker.info"] == "docker info --format {{json .}}"
    assert (
        by_name()["dpkg.list"].argv[2] == "-f=${db:Status-Abbrev}\t${Package}\t${Version}\t${Architecture}\n"
    )


def test_nvidia_smi_is_asked_in_turn_and_only_where_that_loads_nothing() -> None:
    asked = [item for item in ITEMS if item.argv[:1] == ("nvidia-smi",)]
    assert len(asked) >= 4
    assert {(item.lane, item.when, item.never_twice) for item in asked} == {
        ("nvidia-smi", "driver-loaded", True)
    }


@pytest.mark.parametrize("path", PLANNERS, ids=lambda path: path.stem)
def test_every_file_that_a_planner_writes_is_recorded(path: Path) -> None:
    """Otherwise no control could see whether it is what it should be."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            written = re.fullmatch(r"/etc/\S*[^/\s]", node.value)
            known = node.value in FILES or any(fnmatch.fnmatch(node.value, pattern) for pattern in GLOBS)
            assert known or not written, f"{path.name}: {node.value} is not in items.FILES"


def test_the_questions_are_plain_data() -> None:
    document = json.loads(json.dumps(questions()))
    assert len(document["items"]) == len(ITEMS)
    assert document["seconds"] > max(item.seconds for item in ITEMS)
