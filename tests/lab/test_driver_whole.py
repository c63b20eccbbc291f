"""Drivers by the whole command: boards with NVSwitches, and moves over branches and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from whole import Whole

from provision.planners import fabric

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from archive.served import Archive

    from provision.lab import LabHost

pytestmark = pytest.mark.full
NVIDIA = "nvidia_driver_source=nvidia"
TRAINING = ("--profile", "training")


@pytest.mark.parametrize(
    ("gpus", "beside"),
    [("H100:8", set()), ("B200:8", {"nvlsm"})],
)
def test_a_bare_board_with_switches_is_proven_and_a_second_run_has_nothing_to_do(
    lab_up: Callable[..., LabHost], archive: Archive, tmp_path: Path, gpus: str, beside: set[str]
) -> None:
    whole = Whole(tmp_path, lab_up(gpus=gpus), archive, NVIDIA)
    first = whole.bootstrap(words=TRAINING)
    assert first.status == 0, first.told
    assert first.host["state"] == "done"
    assert "nvidia_driver" in first.planned
    assert first.bad() == []
    there = whole.installed()
    # From R620 on it has releases of its own.
    assert whole.loaded() == "620.70.06"
    assert there["nvidia-fabricmanager"] == "2.0.0-1"
    assert beside <= set(there)
    assert {"nvidia-fabricmanager", "libcuda1", *beside} <= whole.held()
    assert whole.shell(f"systemctl is-enabled {fabric.UNIT}").strip() == "enabled"
    states = whole.shell("nvidia-smi --query-gpu=fabric.state --format=csv,noheader").split("\n")
    assert set(states) - {""} == {"Completed"}
    second = whole.bootstrap(words=TRAINING)
    assert (second.status, second.planned) == (0, []), second.told
    # Driver and fabric manager move together, or not at all.
    moved = whole.moved("nvidia_driver_branch=580", words=TRAINING)
    assert moved.status == 0, moved.told
    assert whole.loaded().startswith("580.")
    assert whole.installed()["nvidia-fabricmanager"] == f"{whole.loaded()}-1"
    assert moved.bad() == []


def test_branches_are_moved_in_one_go_and_back(
    lab_up: Callable[..., LabHost], archive: Archive, tmp_path: Path
) -> None:
    whole = Whole(tmp_path, lab_up(), archive, NVIDIA)
    whole.shell("apt-mark hold bash >/dev/null")
    releases = {"570": "570.211.01", "580": "580.126.20", "595": "595.71.05"}
    sets: dict[str, dict[str, str]] = {}
    for branch in ("570", "580", "595", "580"):
        ended = whole.moved(f"nvidia_driver_branch={branch}")
        assert ended.status == (1 if branch == "570" else 0), ended.told
        # R570 ended in February 2026; who names it is told, and gets it.
        assert {control for control, *_ in ended.bad()} <= {"driver.branch-supported"}
        there = whole.installed()
        assert whole.loaded() == releases[branch]
        assert whole.modules() == {releases[branch]}
        assert {v for n, v in there.items() if "pinning" not in n} == {f"{releases[branch]}-1"}
        # The whole set is held, nothing of the set before it, and what was somebody else's still is.
        assert whole.held() == {*there, "bash"}
        assert sets.setdefault(branch, there) == there
    again = whole.bootstrap("nvidia_driver_branch=580")
    assert (again.status, again.planned) == (0, []), again.told
    refused = whole.bootstrap("nvidia_driver_version=550.54.14")
    assert refused.status == 1, refused.told
    assert whole.installed() == sets["580"]
