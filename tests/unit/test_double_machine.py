"""The machine around the double's GPUs: what is asked for, the PCI bus, how cards are joined."""

from __future__ import annotations

import shutil
import subprocess
from importlib import resources
from typing import TYPE_CHECKING

import pytest
from double_world import Host

from provision.errors import Usage
from provision.lab.double import faults, parse_gpus
from provision.lab.double.host import pci
from provision.lab.double.host.world import FAULTS, relation
from provision.lab.double.machine import build
from provision.lab.double.models import models, platforms

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[str], Host]:
    return lambda gpus: Host(tmp_path, gpus, monkeypatch, capsys)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("A100-SXM4-80GB:2", ["NVIDIA A100-SXM4-80GB"] * 2),
        ("a100-sxm4", ["NVIDIA A100-SXM4-80GB"]),
        ("NVIDIA GeForce RTX 3090:2", ["NVIDIA GeForce RTX 3090"] * 2),
        ("rtx3090", ["NVIDIA GeForce RTX 3090"]),
        ("T4:1, V100-SXM2:1", ["Tesla T4", "Tesla V100-SXM2-16GB"]),
        ("H100-SXM5:8", ["NVIDIA H100 80GB HBM3"] * 8),
        ("none", []),
    ],
)
def test_gpus_are_known_by_their_names(text: str, names: list[str]) -> None:
    spec = parse_gpus(text)
    assert list(spec.models) == names
    assert parse_gpus(str(spec)) == spec


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("A100-SMX4:2", "A100-SXM4"),
        ("T4:0", "count"),
        ("T4:two", "count"),
        ("T4:9", "slots"),
        ("T4,,T4", "model"),
    ],
)
def test_what_is_not_known_is_said(text: str, says: str) -> None:
    with pytest.raises(Usage, match=says):
        parse_gpus(text)


def test_every_model_makes_a_machine() -> None:
    for name, card in models().items():
        slots = len(platforms()[card["platform"]]["gpus"])
        machine = build(parse_gpus(f"{name}:{slots}"), seed="x")
        addresses = [device["address"] for device in machine["devices"]]
        assert len(set(addresses)) == len(addresses)
        assert [gpu["address"] for gpu in machine["gpus"]] == sorted(
            gpu["address"] for gpu in machine["gpus"]
        )
        assert len({gpu["uuid"] for gpu in machine["gpus"]}) == slots
        for row, links in enumerate(machine["links"]):
            assert links[row] == 0
            assert links == [other[row] for other in machine["links"]]
            assert sum(links) <= card.get("nvlink", {"links": 0})["links"] * slots


def test_two_hosts_differ_and_one_stays_itself() -> None:
    first, again, other = (build(parse_gpus("T4"), seed=seed) for seed in ("a", "a", "b"))
    assert first == again
    assert first["gpus"][0]["uuid"] != other["gpus"][0]["uuid"]


@pytest.mark.parametrize(
    ("one", "other", "word"),
    [
        ([0, 0, 0, 0], [0, 0, 0, 0], "PIX"),
        ([0, 0, 0, 0], [0, 0, 0, 1], "PXB"),
        ([0, 0, 0, 0], [0, 0, 1, 0], "PHB"),
        ([0, 0, None, 0], [0, 0, None, 0], "PHB"),
        ([0, 0, 0, 0], [0, 1, 0, 0], "NODE"),
        ([0, 0, 0, 0], [1, 1, 0, 0], "SYS"),
    ],
)
def test_relation_of_slots(one: list[int | None], other: list[int | None], word: str) -> None:
    assert relation(one, other) == relation(other, one) == word


def matrix(host: Host) -> dict[str, list[str]]:
    out, code = host.smi("topo", "-m")
    assert code == 0
    rows = out.split("\n\nLegend:")[0].splitlines()
    return {row.split("\t")[0]: [cell.strip() for cell in row.split("\t")[1:]] for row in rows}


@pytest.mark.parametrize(
    ("gpus", "version", "links", "nic", "tail"),
    [
        # As in public captures of such machines, but for CPU numbers.
        ("H100:8", "570.133.20", ["X"] + ["NV18"] * 7, "PIX", ["0-47,96-143", "0", "", "N/A"]),
        ("A100:8", "550.163.01", ["X"] + ["NV12"] * 7, "PXB", ["0-31,64-95", "0", "", "N/A"]),
        ("A100:4", "550.163.01", ["X"] + ["NV4"] * 3, "PXB", ["0-31,64-95", "0", "", "N/A"]),
        ("RTX-3090:2", "550.163.01", ["X", "NV4"], None, ["0-23", "0", "", "N/A"]),
        ("T4:4", "550.163.01", ["X", "NODE", "SYS", "SYS"], None, ["0-15,32-47", "0", "", "N/A"]),
        ("B200:8", "580.105.08", ["X"] + ["NV18"] * 7, "PIX", ["0-55,112-167", "0", "", "N/A"]),
        (
            "V100:8",
            "418.226.00",
            ["X", "NV2", "NV2", "NV1", "NV1", "SYS", "SYS", "SYS"],
            "PXB",
            ["0-19,40-59"],
        ),
    ],
)
def test_topology(
    host: Callable[[str], Host], gpus: str, version: str, links: list[str], nic: str | None, tail: list[str]
) -> None:
    made = host(gpus)
    made.driver(version, is_open=int(version[:3]) > 550)
    rows = matrix(made)
    count = len(links)
    assert rows["GPU0"][:count] == links
    assert rows["GPU0"][-len(tail) :] == tail
    if nic:
        assert rows["GPU0"][count] == nic
    assert all(len(row) == len(rows["GPU0"]) for name, row in rows.items() if name.startswith("GPU"))


def test_nics_are_named_by_branch(host: Callable[[str], Host]) -> None:
    made = host("A100:8")
    made.driver("470.256.02")
    assert "mlx5_0" in matrix(made)
    made.driver("470.256.02")
    assert "NIC Legend" not in made.smi("topo", "-m")[0]


def test_nic_legend_in_newer_branches(host: Callable[[str], Host]) -> None:
    made = host("A100:8")
    made.driver("550.163.01")
    out, _ = made.smi("topo", "-m")
    assert "NIC Legend:\n\n  NIC0: mlx5_0\n  NIC1: mlx5_1\n" in out
    # NIC rows have no affinity, but keep its tabs.
    assert matrix(made)["NIC0"][-4:] == ["", "", "", ""]


def test_a_gpu_that_lost_its_links(host: Callable[[str], Host]) -> None:
    made = host("H100:8")
    made.driver("580.105.08")
    faults.switch(made.world.kept, "nvlink-down", 2)
    rows = matrix(made)
    assert rows["GPU2"][:8] == ["NODE", "NODE", "X", "NODE", "SYS", "SYS", "SYS", "SYS"]
    assert rows["GPU0"][:4] == ["X", "NV18", "NODE", "NV18"]
    out, _ = made.smi("nvlink", "-s", "-i", "2")
    assert "all links are inActive" in out


def test_nvlink_status(host: Callable[[str], Host]) -> None:
    made = host("V100:8")
    made.driver("550.163.01", is_open=False)
    out, code = made.smi("nvlink", "-s", "-i", "0")
    assert code == 0
    assert out.count("\t Link ") == 6
    assert "\t Link 5: 25.781 GB/s\n" in out
    assert made.smi("nvlink", "--sideways") == ('Option "--sideways" is not recognized.\n', 2)


def test_the_bus_holds_gpus_switches_nics_and_a_few_others(host: Callable[[str], Host]) -> None:
    made = host("H100:8")
    devices = made.world.run / "pci/bus/devices"
    ids: dict[str, int] = {}
    for link in devices.iterdir():
        device = made.root / str(link.readlink())[1:]
        name = f"{(device / 'vendor').read_text().strip()[2:]}:{(device / 'device').read_text().strip()[2:]}"
        ids[name] = ids.get(name, 0) + 1
    assert {name: ids[name] for name in ("10de:2330", "10de:22a3", "15b3:1021")} == {
        "10de:2330": 8,
        "10de:22a3": 4,
        "15b3:1021": 8,
    }
    gpu = made.root / str((devices / made.world.gpus()[0]["address"]).readlink())[1:]
    assert (gpu / "numa_node").read_text() == "0\n"
    assert (gpu / "class").read_text() == "0x030200\n"
    assert (gpu / "modalias").read_text() == "pci:v000010DEd00002330sv000010DEsd000016C1bc03sc02i00\n"
    assert "double" in (gpu / "label").read_text()


@pytest.mark.skipif(shutil.which("lspci") is None, reason="pciutils is not installed")
def test_the_real_lspci_reads_it(host: Callable[[str], Host]) -> None:
    made = host("A100:2")
    bus = made.world.run / "pci/bus"
    for link in (bus / "devices").iterdir():
        target = made.root / str(link.readlink())[1:]
        link.unlink()
        link.symlink_to(target)

    def lspci(*args: str) -> str:
        command = ["lspci", "-A", "linux-sysfs", "-O", f"sysfs.path={bus}", *args]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    gpus = [line for line in lspci("-Dn").splitlines() if " 0302: " in line]
    assert gpus == ["0000:03:00.0 0302: 10de:20b2 (rev a1)", "0000:04:00.0 0302: 10de:20b2 (rev a1)"]
    assert "10de:147f" in lspci("-nv", "-s", "03:00.0")
    assert "DeviceName: GPU double, not real hardware" in lspci("-v", "-s", "03:00.0")
    assert "\\-01.1-[01-05]----00.0-[02-05]--" in lspci("-tn")
    faults.switch(made.world.kept, "off-the-bus", 1)
    pci.refresh(made.world)
    assert "Unknown header type" in lspci("-v", "-s", "04:00.0")


def test_infiniband_ports_lead_to_their_devices(host: Callable[[str], Host]) -> None:
    made = host("A100:8")
    port = made.world.run / "infiniband/mlx5_0"
    assert (port / "ports/1/state").read_text() == "4: ACTIVE\n"
    assert (port / "ports/1/rate").read_text() == "200 Gb/sec (4X HDR)\n"
    device = made.root / str((port / "device").readlink())[1:]
    assert (device / "vendor").read_text() == "0x15b3\n"
    assert (device / "driver").is_symlink()


def test_faults_have_names(tmp_path: Path) -> None:
    with pytest.raises(Usage, match="hang"):
        faults.switch(tmp_path, "hangs")
    for name in FAULTS:
        faults.switch(tmp_path, name, 1)
        faults.switch(tmp_path, name, 3)
    faults.switch(tmp_path, "lost", 1, on=False)
    assert '"lost": [3]' in (tmp_path / "faults.json").read_text()
    faults.clear(tmp_path)
    assert not (tmp_path / "faults.json").exists()


def test_models_are_those_of_the_catalog() -> None:
    listed = resources.files("provision.catalog").joinpath("data/gpus.tsv").read_text()
    rows = [line.split("\t") for line in listed.splitlines() if line and not line.startswith("#")]
    for name, card in models().items():
        pci = card["pci"]
        subs = [row[2].split() for row in rows if row[0] == pci["device"] and row[1] == name]
        assert subs, f"{name} is not {pci['device']} in the catalog"
        assert pci["subvendor"] != "10de" or not subs[0] or pci["subdevice"] in subs[0]
