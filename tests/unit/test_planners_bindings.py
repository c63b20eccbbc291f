"""Bindings: whole cores, each GPU's own, on its side of the machine; forms that shells really run."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from facts_cases import ROOT, facts_of
from hypothesis import given, settings
from hypothesis import strategies as st
from yaml import safe_load

from provision.facts import cpu_list
from provision.facts.known import Unknown
from provision.facts.system import Cpu, NumaNode
from provision.facts.topology import Topology
from provision.planners.bindings import Binding, bindings
from provision.report import bindings as forms

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def machine(near: Sequence[str | None], cores: Sequence[tuple[int, ...]], nodes: Sequence[str] = ()) -> Any:
    """Bindings of a host with one GPU for each CPU list, and these cores."""
    gpus = tuple(f"GPU{n}" for n in range(len(near)))
    nothing = Unknown("the table names none")
    table = Topology(
        gpus,
        (),
        {(a, b): "X" if a == b else "SYS" for a in gpus for b in gpus},
        {gpu: text or nothing for gpu, text in zip(gpus, near, strict=True)},
        dict.fromkeys(gpus, (0,)),
        dict.fromkeys(gpus, nothing),
        complete=True,
    )
    rows = tuple(NumaNode(n, cpus, None, ()) for n, cpus in enumerate(nodes))
    return bindings(table, Cpu(None, None, None, {}, (), None, rows, tuple(cores)))


def smt(first: int, count: int, sibling: int) -> list[tuple[int, int]]:
    return [(n, n + sibling) for n in range(first, first + count)]


def test_eight_gpus_on_two_sockets_get_whole_cores_of_their_own_side() -> None:
    cores = smt(0, 96, 96)
    made = machine(["0-47,96-143"] * 4 + ["48-95,144-191"] * 4, cores, ["0-47,96-143", "48-95,144-191"])
    assert [cpu_list.show(b.cpus) for b in made][:2] == ["0-11,96-107", "12-23,108-119"]
    assert cpu_list.show(made[4].cpus) == "48-59,144-155"
    assert {b.threads for b in made} == {12}
    assert not any(b.shared for b in made)


def test_siblings_stay_together_where_firmware_numbers_sockets_in_turn() -> None:
    """Even CPUs on one socket, odd ones on the other, the second threads after all the first."""
    even = ",".join(str(n) for n in range(0, 64, 2))
    made = machine([even, even], [(n, n + 32) for n in range(32)])
    assert made[0].cpus == tuple(sorted([*range(0, 16, 2), *range(32, 48, 2)]))
    assert not set(made[0].cpus) & set(made[1].cpus)


def test_a_guest_whose_table_names_no_cpus_has_all_of_them() -> None:
    made = machine([None, None], [(n,) for n in range(8)])
    assert [b.cpus for b in made] == [(0, 1, 2, 3), (4, 5, 6, 7)]


def test_fewer_cores_than_gpus_are_shared_and_said_to_be() -> None:
    made = machine(["0-1"] * 4, [(0, 1)])
    assert {(b.cpus, b.threads, b.shared) for b in made} == {((0, 1), 1, True)}


def test_cores_that_are_not_known_are_not_guessed() -> None:
    made = machine(["0-31,64-95"] * 4, [])
    assert {(b.cpus[-1], b.threads, b.shared) for b in made} == {(95, 16, True)}


@settings(max_examples=60, deadline=None)
@given(gpus=st.integers(1, 8), cores=st.integers(1, 40), threads=st.integers(1, 4), far=st.integers(0, 7))
def test_no_two_gpus_share_a_core_that_need_not(gpus: int, cores: int, threads: int, far: int) -> None:
    groups = [tuple(n + t * cores for t in range(threads)) for n in range(cores)]
    half = cores // 2
    sides = [groups[:half], groups[half:]] if half else [groups, groups]
    near = [cpu_list.show(n for core in sides[int(gpu < far)] for n in core) for gpu in range(gpus)]
    made = machine(near, groups)
    for a in made:
        assert a.threads >= 1
        assert cpu_list.parse(near[a.index]) is not None
        assert set(a.cpus) <= set(cpu_list.parse(near[a.index]) or ())
        for b in made:
            if a.index < b.index and not a.shared:
                assert not set(a.cpus) & set(b.cpus)
        if not a.shared:
            assert all(set(core) <= set(a.cpus) or not set(core) & set(a.cpus) for core in groups)
            assert len(a.cpus) == a.threads * threads


def test_memory_of_the_gpus_themselves_is_none_of_the_hosts() -> None:
    case = safe_load((ROOT / "topology" / "gb200x4_numa_ids.yml").read_text(encoding="utf-8"))
    facts = facts_of(case["items"])
    made = bindings(facts.topology, facts.cpu)
    assert not isinstance(made, Unknown)
    assert all(len(b.nodes) == 1 for b in made)


def run_wrapper(
    folder: Path, made: tuple[Binding, ...], rank: str | None
) -> subprocess.CompletedProcess[str]:
    """The torchrun form, with a numactl that tells how it was called."""
    (folder / "numactl").write_text('#!/bin/sh\nprintf "%s " "$OMP_NUM_THREADS" "$@"\n')
    (folder / "bind.sh").write_text(forms.torchrun(made))
    for name in ("numactl", "bind.sh"):
        (folder / name).chmod(0o755)
    env = {"PATH": f"{folder}:{os.environ['PATH']}"} | ({} if rank is None else {"LOCAL_RANK": rank})
    return subprocess.run(
        [folder / "bind.sh", "python", "a b"], env=env, capture_output=True, text=True, check=False
    )


def test_the_wrapper_of_torchrun_binds_each_rank(tmp_path: Path) -> None:
    made = machine(["0-3", "4-7"], [(n,) for n in range(8)])
    for rank, cpus in (("0", "0-3"), ("1", "4-7")):
        said = run_wrapper(tmp_path, made, rank)
        assert said.stdout == f"4 --physcpubind={cpus} --membind=0 -- python a b "
    for rank in ("2", None):
        wrong = run_wrapper(tmp_path, made, rank)
        assert (wrong.returncode, "GPUs are 0 to 1" in wrong.stderr) == (2, True)


def test_slurms_masks_are_the_same_cpus() -> None:
    made = machine(["0-3", "4-7"], [(n,) for n in range(8)])
    assert "--cpu-bind=mask_cpu:0xf,0xf0 --mem-bind=local" in forms.slurm(made)
    assert "--gpu-bind=map_gpu:0,1 " in forms.slurm(made)


@pytest.mark.parametrize("text", ["", "3-1", "a", "1,,2", "0-99999", "1-"])
def test_what_is_no_list_of_cpus(text: str) -> None:
    assert cpu_list.parse(text) is None


@given(st.sets(st.integers(0, 300), min_size=1))
def test_a_list_of_cpus_there_and_back(numbers: set[int]) -> None:
    assert cpu_list.parse(cpu_list.show(numbers)) == tuple(sorted(numbers))
