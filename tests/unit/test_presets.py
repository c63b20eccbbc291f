"""Presets: what they set is what the page says, and an audit tells where the hardware falls short of one."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from cases import HEALTHY
from planner_host import MISSING, facts, gpu, link, port, profile, said, with_gpus

from provision.controls.hardware import hardware
from provision.controls.model import Judged, Status
from provision.controls.reading import table
from provision.facts.known import Unknown
from provision.planners import bindings_files, nccl_env, wanted_for
from provision.profile import presets
from provision.profile.compose import compose
from provision.runs.look import judge

if TYPE_CHECKING:
    from types import ModuleType

TREE = Path(__file__).parent.parent.parent
DISK = {"name": "nvme0n1", "path": "/dev/nvme0n1", "type": "disk", "size": 3840755982336, "tran": "nvme"}


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("presets_page", TREE / "tools" / "presets_page.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_up_to_date(tool: ModuleType) -> None:
    assert tool.PAGE.read_text(encoding="utf-8") == tool.page(), (
        "run `.venv/bin/python tools/presets_page.py`"
    )
    assert set(tool.ORDER) == set(presets.names()) == set(table("presets")["presets"])
    assert {column for row in table("presets")["presets"].values() for column in row} <= set(tool._COLUMNS)


@pytest.mark.parametrize("name", presets.names())
def test_a_preset_names_limits_tools_and_files_that_it_explains(name: str) -> None:
    variables = presets.load(name)[1]
    roles = {role for role in ("nccl", "profiling_tools") for v in variables if v.startswith(f"{role}_")}
    assert roles == {"nccl", "profiling_tools"}
    text = (TREE / "inventory" / "group_vars" / f"{name}.yml").read_text(encoding="utf-8")
    assert text.count("# ") >= 2


def node(count: int = 8, **items: Any) -> Judged:
    """A machine of the training kind: eight A100s on NVSwitches, 2 TiB, eight disks, InfiniBand."""
    disks = [{**DISK, "name": f"nvme{n}n1", "path": f"/dev/nvme{n}n1"} for n in range(4)]
    whole = {
        "memory": said("MemTotal: 2147483648 kB\n"),
        "lsblk": said({"blockdevices": disks}),
        "blkid": {"rc": 2, "stdout": "", "stderr": ""},
        "rdma": said([port("mlx5_0", rate="200 Gb/sec")]),
        "ip.addresses": said([link("ens5", "10.0.0.5")]),
        "net": said([{"name": "ens5", "speed": 25000}]),
        **items,
    }
    cards = (gpu(n, memory_mib=81920) for n in range(count))
    named = replace(profile(), name="training")
    return Judged(with_gpus(facts(items=whole), *cards), named, Unknown("none"))


def test_a_node_that_has_it_all_passes() -> None:
    found = hardware(node())
    assert (found.status, found.actual) == (Status.PASS, "what training expects (docs/presets.md)")


@pytest.mark.parametrize(
    ("judged", "says"),
    [
        (node(4), "4 of 8 GPUs"),
        (node(memory=said("MemTotal: 536870912 kB\n")), "512 GiB of memory, not 1280"),
        (node(lsblk=said({"blockdevices": [DISK]})), "1 of 2 NVMe disks"),
        (node(rdma=said([])), "a network of 25 Gbit/s, not 100; no active RDMA port"),
        (node(rdma=said([port("mlx5_8", switch_management=True)])), "no active RDMA port"),
    ],
)
def test_what_is_missing_is_told(judged: Judged, says: str) -> None:
    found = hardware(judged)
    assert found.status is Status.WARN
    assert says in found.actual


def test_cards_without_switches_and_with_little_memory_are_told() -> None:
    small = node()
    with_gpus(small.facts, *(gpu(n, name="NVIDIA A10", memory_mib=23028) for n in range(8)))
    assert "a GPU with 22 GiB, not 39" in hardware(small).actual
    assert "no board whose GPUs are joined by NVSwitches" in hardware(small).actual


def test_what_cannot_be_told_is_unknown_and_a_container_is_left_out() -> None:
    assert hardware(node(memory={"timed_out": True, "rc": None, "seconds": 5})).status is Status.UNKNOWN
    assert hardware(node(virtualization=said("lxc\n"))).status is Status.SKIP
    own = node()
    assert hardware(Judged(own.facts, profile(), own.stack)).status is Status.SKIP


@pytest.mark.parametrize("name", presets.names())
def test_no_preset_asks_for_what_a_healthy_host_cannot_have(name: str) -> None:
    chosen = compose(*presets.load(name), {}, {"nvidia_driver_source": "debian", "cuda_versions": []})
    sysctl = HEALTHY.items["sysctl"]
    # The recording is older than these questions.
    asked_since = {
        **{f"file:{path}": MISSING for path in (nccl_env.PATH, bindings_files.MAP, bindings_files.THREADS)},
        "sysctl": {**sysctl, "stdout": sysctl["stdout"] + "fs.nr_open = 1048576\n"},
    }
    seen = judge(replace(HEALTHY, items={**HEALTHY.items, **asked_since}), chosen)
    for role in ("limits", "profiling_tools", "nccl"):
        planned = wanted_for(role, seen.judged.facts, chosen, seen.judged.stack)
        assert planned.refused is None
        asked = any(name.startswith(f"{role}_") for name in chosen.chosen)
        assert bool(planned.files or planned.packages) is asked
