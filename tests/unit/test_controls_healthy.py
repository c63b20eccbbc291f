"""Healthy hosts give no warning: a complete recording, and every model that the GPU double stands in for."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from cases import HEALTHY, RECORDINGS, TODAY, judged
from double_world import Host

from provision.controls import all_controls
from provision.controls.model import Status
from provision.lab.double.models import models, platforms
from provision.profile.compose import compose
from provision.recording.model import Recording
from provision.runs.look import judge

if TYPE_CHECKING:
    from pathlib import Path

    from provision.controls.model import Finding

# What nvidia-smi alone settles.
SETTLED = [
    *(
        f"gpu.{rule}"
        for rule in ("health", "ecc", "remapped-rows", "recovery-action", "throttle", "pcie-link", "mig")
    ),
    *("topology.readable", "topology.nvlink", "topology.nic-locality", "fabric.state"),
]


def test_a_complete_healthy_host_passes_all_that_applies() -> None:
    found = judged(HEALTHY)
    odd = {
        name: (f.status, f.actual) for name, f in found.items() if f.status not in (Status.PASS, Status.SKIP)
    }
    # Debian keeps its branch longer than NVIDIA does, which is told as long as it lasts.
    assert set(odd) <= {"driver.branch-supported"}
    assert Counter(f.status for f in found.values())[Status.PASS] > 55


def smi_items(made: Host) -> dict[str, Any]:
    questions = {
        "nvidia-smi.query": ("-q", "-x"),
        "nvidia-smi.topology": ("topo", "-m"),
        "nvidia-smi.list": ("-L",),
        "nvidia-smi.nvlink": ("nvlink", "-s"),
    }
    items: dict[str, Any] = {"virtualization": {"rc": 1, "stdout": "none\n", "stderr": ""}}
    for name, argv in questions.items():
        text, code = made.smi(*argv)
        items[name] = {"rc": code, "stdout": text, "stderr": ""}
    return items


def release(card: dict[str, Any]) -> tuple[str, bool]:
    """A driver that serves the card, and whether its modules are the open ones."""
    driver = card["driver"]
    version = "535.309.01" if int(driver["first"]) <= 535 else "580.105.08"
    return version, driver.get("modules") != "proprietary" and int(driver["first"]) >= 550


def found_on(
    name: str,
    count: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    *,
    managed: bool = True,
) -> dict[str, Finding]:
    made = Host(tmp_path, f"{name}:{count}", monkeypatch, capsys)
    version, is_open = release(models()[name])
    made.driver(version, is_open=is_open)
    if managed:
        made.fabric_manager(version)
    return judged(Recording("gpu01", "2026-11-30T12:00:00Z", True, 0.4, smi_items(made)))


@pytest.mark.parametrize("name", sorted(models()))
def test_every_model_of_the_double_is_healthy(
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    slots = len(platforms()[models()[name]["platform"]]["gpus"])
    found = found_on(name, slots, tmp_path, monkeypatch, capsys)
    assert {
        n: (found[n].status, found[n].actual) for n in SETTLED if found[n].status not in ("pass", "skip")
    } == {}
    assert found["gpu.health"].status is Status.PASS


def test_a_board_with_switches_and_no_fabric_manager_is_not_healthy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = found_on("NVIDIA B200", 8, tmp_path, monkeypatch, capsys, managed=False)
    assert found["fabric.state"].status is Status.FAIL
    assert "In Progress" in found["fabric.state"].actual


def test_nothing_is_told_of_a_recording_without_answers() -> None:
    empty = Recording("gpu01", "2026-11-30T12:00:00Z", True, 0.4, {})
    found = judged(empty)
    assert set(found) == set(all_controls())
    told = {name for name, f in found.items() if f.status is not Status.UNKNOWN}
    # The profile alone settles that these do not apply: it names no limit, setting or file.
    assert told == {
        "host.limits",
        "host.kernel-settings",
        "host.time-service",
        "host.hardware",
        "nccl.environment",
        "nccl.bindings",
        "nccl.gpu-direct",
        "storage.data-disks",
        *(name for name in all_controls() if name.startswith("profiling.")),
    }


OTHERS = sorted((RECORDINGS / "others").glob("*.json"))


@pytest.mark.parametrize("path", OTHERS, ids=lambda path: path.stem)
def test_a_healthy_host_that_others_set_up_is_not_found_wanting(path: Path) -> None:
    """What only our roles would do (a hold, a limit, a file of ours) is no fault where nobody asks for it.

    These recordings stay as they are when roles learn more.
    """
    recording = Recording.from_json(path.read_text(encoding="utf-8"))
    found = judge(recording, compose("default", {}, {}, {}), TODAY).findings
    odd = {f.control: f.actual for f in found if f.status not in (Status.PASS, Status.SKIP)}
    assert set(odd) <= {"driver.branch-supported"}, odd
