"""`gpu-provision topology` over a pasted table and over a saved recording."""

from __future__ import annotations

import io
import json
import sys
from typing import TYPE_CHECKING

import pytest
from facts_cases import ROOT
from yaml import safe_load

from provision.cli.main import main
from provision.recording.model import Recording

if TYPE_CHECKING:
    from pathlib import Path


def table(name: str) -> str:
    case = safe_load((ROOT / "topology" / f"{name}.yml").read_text(encoding="utf-8"))
    return str(case["items"]["nvidia-smi.topology"]["stdout"])


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    def call(*arguments: str, stdin: str = "") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        with pytest.raises(SystemExit) as ended:
            main(["topology", *arguments])
        out, err = capsys.readouterr()
        return int(ended.value.code or 0), out, err

    return call


def test_json_of_a_pasted_table(run) -> None:
    code, out, err = run("-", "--json", stdin=table("a100x2_underlined_header"))
    shown = json.loads(out)
    assert (code, err) == (0, "")
    assert shown["schema"] == "gpu-provision/topology/1"
    assert [gpu["name"] for gpu in shown["gpus"]] == ["GPU0", "GPU1"]
    assert shown["gpus"][0] == {
        "name": "GPU0",
        "cpu_affinity": "0-63",
        "numa_nodes": [0],
        "gpu_numa_id": None,
        "nearest_nics": ["NIC0", "NIC1"],
    }
    assert shown["links"]["GPU0"] == {"GPU1": "NV12", "NIC0": "PXB", "NIC1": "PXB"}
    assert shown["nics"] == [{"name": "NIC0", "device": None}, {"name": "NIC1", "device": None}]
    assert (shown["mesh"], shown["complete"]) == ("NV12", True)


def test_text_names_the_gpu_without_nvlink(run) -> None:
    code, out, _ = run("-", stdin=table("b200x8_one_without_nvlink"))
    assert code == 0
    assert "GPU2 reaches no other over NVLink" in out
    assert "\nGPU2  NODE  NODE  X " in out
    assert "GPU7: CPUs 56-111,168-223, NUMA node 1, nearest NICs none" in out


def test_text_uses_the_legend_and_ranges(run) -> None:
    assert "nearest NICs mlx5_0, mlx5_bond_1" in run("-", stdin=table("a100x2_tabs"))[1]
    assert "NUMA node 1,19-25,27-33" in run("-", stdin=table("gb200x4_numa_ids"))[1]


def test_what_a_table_lacks_is_said(run) -> None:
    code, out, _ = run("-", stdin=table("rows_of_nics_missing"))
    assert code == 0
    assert "not complete" in out
    code, out, _ = run("-", "--json", stdin=table("asymmetric"))
    assert json.loads(out)["asymmetric"] == [["GPU0", "GPU1"]]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("wrong_flags", "must be used in conjunction"),
        ("cell_missing", "topology table malformed: row GPU0 has 3 cells, header 4"),
        ("glued_header", "NIC0NIC1"),
    ],
)
def test_no_table_is_not_judged(run, name: str, says: str) -> None:
    code, out, err = run("-", stdin=table(name))
    assert (code, out) == (3, "")
    assert says in err
    code, out, _ = run("-", "--json", stdin=table(name))
    assert code == 3
    assert says in json.loads(out)["unknown"]


def test_a_saved_recording(run, tmp_path: Path) -> None:
    items = {"nvidia-smi.topology": {"rc": 0, "stdout": table("a100x2_tabs")}}
    saved = tmp_path / "gpu01.json"
    saved.write_text(json.dumps(Recording("gpu01", "", True, 0.1, items).as_dict()))
    code, out, _ = run("--recording", str(saved), "--json")
    assert code == 0
    assert json.loads(out)["host"] == "gpu01"
    assert json.loads(out)["nics"][1] == {"name": "NIC1", "device": "mlx5_bond_1"}


def test_a_recording_without_topology_is_not_judged(run, tmp_path: Path) -> None:
    saved = tmp_path / "gpu01.json"
    saved.write_text(json.dumps(Recording("gpu01", "", True, 0.1, {}).as_dict()))
    code, _, err = run("--recording", str(saved))
    assert code == 3
    assert "nvidia-smi.topology was not asked" in err


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"{", "not JSON"),
        (b'{"schema": "other/1"}', "schema is"),
        (b"\xff\xfe", "no UTF-8"),
        (None, "No such file"),
    ],
)
def test_a_file_that_is_no_recording_is_a_wrong_call(
    run, tmp_path: Path, text: bytes | None, says: str
) -> None:
    saved = tmp_path / "x.json"
    if text is not None:
        saved.write_bytes(text)
    code, out, err = run("--recording", str(saved))
    assert (code, out) == (2, "")
    assert says in err


@pytest.mark.parametrize("arguments", [(), ("-", "--recording", "x")])
def test_one_source_is_needed(run, arguments: tuple[str, ...]) -> None:
    assert run(*arguments)[0] == 2


def test_bindings_for_launchers(run, tmp_path: Path) -> None:
    siblings = [f"{n},{n + 32}" for first in (0, 64) for n in range(first, first + 32)]
    cpu = {
        "governors": {},
        "nodes": [{"node": 0, "cpus": "0-63"}, {"node": 1, "cpus": "64-127"}],
        "cores": siblings,
    }
    items = {
        "nvidia-smi.topology": {"rc": 0, "stdout": table("a100x2_underlined_header")},
        "cpu": {"rc": 0, "stdout": json.dumps(cpu)},
    }
    saved = tmp_path / "gpu01.json"
    saved.write_text(json.dumps(Recording("gpu01", "", True, 0.1, items).as_dict()))
    code, out, _ = run("--recording", str(saved), "--bindings", "--json")
    assert code == 0
    assert json.loads(out)["bindings"][1]["numactl"] == "numactl --physcpubind=64-127 --membind=1"
    code, out, _ = run("--recording", str(saved), "--bindings")
    assert "GPU0: CPUs 0-63, NUMA node 0, 32 threads, NICs NIC0, NIC1" in out
    assert "srun --exclusive" in out


def test_bindings_of_a_pasted_table_say_what_they_lack(run) -> None:
    text = "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tSYS\t0-7\t0\nGPU1\tSYS\t X \t0-7\t0\n"
    code, out, _ = run("-", "--bindings", stdin=text)
    assert code == 0
    assert "GPU1: CPUs 0-7, NUMA node 0, 4 threads (CPUs shared with other GPUs)" in out


def test_no_bindings_without_cpus(run) -> None:
    text = "\tGPU0\tGPU1\nGPU0\t X \tSYS\nGPU1\tSYS\t X \n"
    code, out, err = run("-", "--bindings", stdin=text)
    assert (code, out) == (3, "")
    assert "CPUs near GPU0 are not known" in err
