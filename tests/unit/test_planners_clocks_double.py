"""Clocks planned from what nvidia-smi prints of each model, then set on the GPU double by the planned calls themselves."""

# ruff: noqa: E501

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from double_world import Host
from planner_host import facts, profile, said, stack

from provision.planners import gpu_settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from provision.planners.gpu_settings import SettingsWanted


@pytest.fixture
def host(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[str, str], Host]:
    def make(gpus: str, driver: str) -> Host:
        made = Host(tmp_path, gpus, monkeypatch, capsys)
        made.driver(driver, is_open="V100" not in gpus)  # no open modules before Turing
        return made

    return make


def plan(machine: Host, asked: Any) -> SettingsWanted:
    document, status = machine.smi("-q", "-x")
    assert status == 0
    planned = gpu_settings.wanted(
        facts(items={"nvidia-smi.query": said(document)}), profile(gpu_settings_clocks=asked), stack()
    )
    assert planned.refused is None, planned.refused
    return planned


@pytest.mark.parametrize(
    ("gpus", "driver", "asked", "kinds", "unsupported"),
    [
        ("T4", "535.309.01", "max", {"-lgc"}, 0),
        ("T4", "550.163.01", "base", {"-lgc"}, 0),
        ("A100-SXM4-80GB:8", "535.309.01", "max", {"-lgc", "-lmc"}, 0),
        ("A100-SXM4-80GB:8", "535.309.01", "base", {"-lgc", "-lmc"}, 0),
        ("H100:8", "550.163.01", "max", {"-lgc", "-lmc"}, 0),
        ("RTX3090:2", "550.163.01", "max", {"-lgc", "-lmc"}, 0),
        ("RTX3090:2", "550.163.01", "base", set(), 2),
        ("V100:8", "535.309.01", "max", {"-lgc"}, 0),
        ("B200:8", "580.105.08", "max", {"-lgc", "-lmc"}, 0),
        ("H100:8", "595.58.03", "base", set(), 8),
    ],
)
def test_every_planned_call_is_accepted_by_the_card(
    host: Callable[[str, str], Host], gpus: str, driver: str, asked: str, kinds: set[str], unsupported: int
) -> None:
    machine = host(gpus, driver)
    machine.smi("-pm", "1")
    planned = plan(machine, asked)
    calls = [(s.gpu, argv) for s in planned.settings for argv in s.set]
    assert {argv[0] for _, argv in calls} == kinds
    assert len([s for s in planned.settings if s.unsupported]) == unsupported
    for gpu, argv in calls:
        said_, status = machine.smi("-i", gpu, *argv)
        assert status == 0, said_
        assert "not supported" not in said_.lower()
    for setting in planned.settings:
        for argv in setting.reset:
            assert machine.smi("-i", setting.gpu, *argv)[1] == 0


@pytest.mark.parametrize(
    ("gpus", "driver", "waits", "unsupported"),
    [("A100-SXM4-80GB:2", "535.309.01", {"gpu_settings_ecc"}, set()),
     ("H100:8", "550.163.01", {"gpu_settings_ecc"}, set()),
     ("T4", "550.163.01", {"gpu_settings_ecc"}, {"gpu_settings_mig"}),
     ("RTX3090:2", "550.163.01", set(), {"gpu_settings_ecc", "gpu_settings_mig"})],
)  # fmt: skip
def test_what_is_named_is_set_and_read_back(
    host: Callable[[str, str], Host], gpus: str, driver: str, waits: set[str], unsupported: set[str]
) -> None:
    machine = host(gpus, driver)
    machine.smi("-pm", "1")
    watts = {"A": 300, "H": 500, "T": 65, "R": 300}[gpus[0]]
    asked = {"gpu_settings_ecc": False, "gpu_settings_mig": True, "gpu_settings_power_limit": watts,
             "gpu_settings_compute_mode": "exclusive_process"}  # fmt: skip

    def named() -> dict[str, Any]:
        document, _ = machine.smi("-q", "-x")
        host_now = facts(items={"nvidia-smi.query": said(document)})
        planned = gpu_settings.wanted(host_now, profile(**asked), stack())
        assert planned.refused is None, planned.refused
        return dict(planned.named[0])

    first = named()
    assert {name for name, given in first.items() if given.unsupported} == unsupported
    assert all(given.wrong for name, given in first.items() if name not in unsupported)
    for given in first.values():
        for argv in given.set:
            said_, status = machine.smi("-i", "0", *argv)
            assert status == 0, said_
    after = named()
    assert not any(given.wrong for given in after.values()), after
    assert {name for name, given in after.items() if given.waits} == waits
