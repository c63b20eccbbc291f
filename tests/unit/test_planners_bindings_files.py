"""The files for launchers: what they say, when they are left alone, and when they go."""

from __future__ import annotations

import json
from typing import Any

from planner_host import MISSING, facts, profile, said, stack, text

from provision.controls.model import Judged, Status
from provision.controls.nccl_bindings import bindings
from provision.facts.known import Unknown
from provision.planners import bindings_files, nccl

TABLE = (
    "\tGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
    "GPU0\t X \tNV12\tPXB\t0-7\t0\t\tN/A\n"
    "GPU1\tNV12\t X \tSYS\t8-15\t1\t\tN/A\n"
    "NIC0\tPXB\tSYS\t X \n\nLegend:\n\nNIC Legend:\n\n  NIC0: mlx5_0\n"
)
CPU = {
    "count": 16,
    "sockets": 2,
    "governors": {},
    "nodes": [
        {"node": 0, "cpus": "0-7", "distance": "10 21"},
        {"node": 1, "cpus": "8-15", "distance": "21 10"},
    ],
    "cores": [f"{n},{n + 1}" for n in range(0, 16, 2)],
}
HOST: dict[str, Any] = {
    "nvidia-smi.topology": said(TABLE),
    "cpu": said(CPU),
    "file:/etc/nccl.conf": MISSING,
    f"file:{bindings_files.MAP}": MISSING,
    f"file:{bindings_files.THREADS}": MISSING,
}


def files(wanted: bool = True, **items: Any) -> dict[str, str | None]:
    planned = nccl.wanted(facts(items={**HOST, **items}), profile(nccl_bindings=wanted), stack())
    assert planned.refused is None
    return {file.path: file.text for file in planned.files if file.path != "/etc/nccl.conf"}


def judge(wanted: bool = True, **items: Any) -> Any:
    return bindings(Judged(facts(items={**HOST, **items}), profile(nccl_bindings=wanted), Unknown("none")))


def written(**changed: Any) -> dict[str, Any]:
    return {f"file:{path}": text(content or "") for path, content in {**files(), **changed}.items()}


def test_the_map_and_the_threads_follow_the_table_and_the_cores() -> None:
    made = files()
    rows = json.loads(made[bindings_files.MAP] or "")["bindings"]
    assert [(r["index"], r["cpus"], r["numa_nodes"], r["nics"], r["threads"]) for r in rows] == [
        (0, "0-7", [0], ["mlx5_0"], 4),
        (1, "8-15", [1], ["mlx5_0"], 4),
    ]
    assert rows[1]["numactl"] == "numactl --physcpubind=8-15 --membind=1"
    threads = (made[bindings_files.THREADS] or "").splitlines()
    assert threads[1:] == ["OMP_NUM_THREADS=4", "MKL_NUM_THREADS=4", "OPENBLAS_NUM_THREADS=4"]


def test_a_host_as_its_files_say_passes_and_moved_cards_do_not() -> None:
    assert judge(**written()).status is Status.PASS
    moved = said(TABLE.replace("0-7\t0", "8-15\t1"))
    assert judge(**{**written(), "nvidia-smi.topology": moved}).status is Status.FAIL
    assert "not there" in judge().actual


def test_files_that_nobody_asks_for_go() -> None:
    assert files(wanted=False) == {}
    assert files(wanted=False, **written()) == {bindings_files.MAP: None, bindings_files.THREADS: None}
    assert judge(wanted=False, **written()).status is Status.FAIL
    assert judge(wanted=False).status is Status.SKIP


def test_what_cannot_be_told_is_left_alone_and_is_no_work_of_the_role() -> None:
    for broken in ("garbage\n", "\tNIC0\nNIC0\t X \n"):
        items = {"nvidia-smi.topology": said(broken)}
        assert files(**items) == {}
        assert judge(**items).status is Status.UNKNOWN
