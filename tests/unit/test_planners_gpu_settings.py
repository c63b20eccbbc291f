"""Role gpu_settings: the daemon's traps, which clocks a card can be given, and what is refused."""

# ruff: noqa: E501

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from planner_host import (
    DAEMON,
    MISSING,
    NO_CLOCKS,
    NOT_TOLD,
    facts,
    gpu,
    pci,
    profile,
    said,
    stack,
    text,
    unit,
    with_gpus,
)

from provision.facts.known import Unsupported
from provision.facts.smi_model import Clocks, Ecc, Gpu, Mig, Mode, Power
from provision.planners import gpu_settings
from provision.planners.gpu_settings import CLOCKS_UNIT, DROP_IN, SCRIPT, UNIT_FILE

if TYPE_CHECKING:
    from pathlib import Path

DEPRECATED = Unsupported("Requested functionality has been deprecated", "nvidia-smi.query", deprecated=True)
GONE = Clocks(DEPRECATED, DEPRECATED, DEPRECATED)
NONE = Clocks(NOT_TOLD, NOT_TOLD, NOT_TOLD)
V100 = gpu(name="Tesla V100-SXM2-32GB", architecture="Volta", supported_clocks={877: (1530, 1522, 1312, 135)},
           application_clocks=Clocks(1312, 877, NOT_TOLD), default_application_clocks=Clocks(1312, 877, NOT_TOLD))  # fmt: skip
T4 = gpu(name="Tesla T4", architecture="Turing", supported_clocks={5001: (1590, 585, 300), 405: (645, 300)},
         application_clocks=Clocks(585, 5001, NOT_TOLD), default_application_clocks=Clocks(585, 5001, NOT_TOLD))  # fmt: skip
P100 = gpu(name="Tesla P100", architecture="Pascal", supported_clocks={715: (1328, 1189, 544)},
           application_clocks=Clocks(1189, 715, NOT_TOLD), default_application_clocks=Clocks(1189, 715, NOT_TOLD))  # fmt: skip
GTX1080 = gpu(name="GeForce GTX 1080", architecture="Pascal", supported_clocks={5005: (1911, 139)}, application_clocks=NONE,
              default_application_clocks=NONE)  # fmt: skip
RTX3090 = gpu(name="NVIDIA GeForce RTX 3090", supported_clocks={9751: (2100, 1695, 210), 405: (420, 210)},
              application_clocks=NONE, default_application_clocks=NONE)  # fmt: skip
L40S = gpu(name="NVIDIA L40S", architecture="Ada Lovelace", supported_clocks={9001: (2520, 210)}, application_clocks=GONE,
           default_application_clocks=GONE)  # fmt: skip


def plan(*cards: Gpu, items: dict[str, Any] | None = None, **variables: Any) -> gpu_settings.SettingsWanted:
    host = with_gpus(facts(items=items or {}), *(cards or (gpu(0), gpu(1))))
    return gpu_settings.wanted(host, profile(**variables), stack())


def script(planned: gpu_settings.SettingsWanted) -> list[str]:
    """The nvidia-smi calls of `set`, without the card's name."""
    assert planned.refused is None, planned.refused
    found = {file.path: file.text for file in planned.files}[SCRIPT] or ""
    lines = found.partition("set)\n")[2].partition(";;")[0].splitlines()
    return [line.strip().partition(" -i ")[2].partition(" ")[2] for line in lines if line.strip()]


def test_by_default_the_daemon_is_on_and_clocks_are_left_alone() -> None:
    planned = plan()
    assert [(u.name, u.enabled, u.active) for u in planned.units] == [(gpu_settings.DAEMON, True, True)]
    assert all(file.text is None for file in planned.files)
    assert not planned.restart


def test_a_packaged_unit_that_switches_persistence_off_gets_a_drop_in_that_stays() -> None:
    line = "/usr/bin/nvidia-persistenced --user nvidia-persistenced --no-persistence-mode --verbose"
    ubuntu = unit("nvidia-persistenced.service", "active", "static", line)
    first = {f.path: f.text for f in plan(items={"units": said(f"{ubuntu}\n\n{NO_CLOCKS}\n")}).files}[DROP_IN]
    assert first is not None
    want = "/usr/bin/nvidia-persistenced --user nvidia-persistenced --persistence-mode --verbose"
    assert f"\nExecStart=\nExecStart={want}\n" in first
    after = unit("nvidia-persistenced.service", "active", "enabled", want)
    items = {"units": said(f"{after}\n\n{NO_CLOCKS}\n"), f"file:{DROP_IN}": text(first)}
    assert {f.path: f.text for f in plan(items=items).files}[DROP_IN] == first


def test_a_daemon_that_runs_while_a_card_says_disabled_is_restarted() -> None:
    assert plan(gpu(0), gpu(1, persistence=False)).restart == (gpu_settings.DAEMON,)


def test_a_masked_daemon_is_refused_and_left_alone_where_persistence_is_off() -> None:
    masked = DAEMON.replace("LoadState=loaded", "LoadState=masked")
    assert masked != DAEMON
    items = {"units": said(f"{masked}\n\n{NO_CLOCKS}\n")}
    assert "systemctl unmask nvidia-persistenced.service" in (plan(items=items).refused or "")
    assert plan(items=items, gpu_settings_persistence=False).refused is None


def test_persistence_off_stops_the_daemon_and_undoes_what_was_set_past_it() -> None:
    off = plan(gpu_settings_persistence=False)
    assert [(u.name, u.enabled, u.active) for u in off.units] == [(gpu_settings.DAEMON, False, False)]
    assert not off.legacy_off
    stopped = unit("nvidia-persistenced.service", "inactive", "disabled", "/usr/bin/nvidia-persistenced")
    items = {"units": said(f"{stopped}\n\n{NO_CLOCKS}\n")}
    assert plan(items=items, gpu_settings_persistence=False).legacy_off


def test_clocks_without_persistence_are_refused() -> None:
    assert (
        "needs gpu_settings_persistence"
        in plan(gpu_settings_persistence=False, gpu_settings_clocks="max").refused
    )


@pytest.mark.parametrize(
    ("card", "asked", "calls"),
    [
        (gpu(), "max", ["-lgc 1410,1410", "-lmc 1593,1593"]),
        (gpu(), "base", ["-lgc 1275,1275", "-lmc 1593,1593"]),
        (gpu(), {"graphics": 1395}, ["-lgc 1395,1395"]),
        (gpu(), {"graphics": 1380, "memory": 1593}, ["-lgc 1380,1380", "-lmc 1593,1593"]),
        (V100, "max", ["-lgc 1530,1530"]),
        (T4, "base", ["-lgc 585,585"]),
        (P100, "max", ["-ac 715,1328"]),
        (P100, "base", ["-ac 715,1189"]),
        (RTX3090, "max", ["-lgc 2100,2100", "-lmc 9751,9751"]),
        (RTX3090, {"graphics": 420, "memory": 405}, ["-lgc 420,420", "-lmc 405,405"]),
        (L40S, "max", ["-lgc 2520,2520", "-lmc 9001,9001"]),
    ],
)
def test_a_card_is_given_what_it_has(card: Gpu, asked: Any, calls: list[str]) -> None:
    assert script(plan(card, gpu_settings_clocks=asked)) == calls


@pytest.mark.parametrize(
    ("card", "asked", "says"),
    [
        (GTX1080, "max", "neither locked nor application clocks"),
        (RTX3090, "base", "does not tell its base clocks"),
        (L40S, "base", "does not tell its base clocks"),
        (gpu(supported_clocks=NOT_TOLD), "max", "lists no clocks"),
        (gpu(architecture=NOT_TOLD), "max", "architecture is not known"),
    ],
)
def test_what_a_card_does_not_support_is_an_answer_and_no_unit(card: Gpu, asked: Any, says: str) -> None:
    planned = plan(card, gpu_settings_clocks=asked)
    assert planned.refused is None
    assert says in (planned.settings[0].unsupported or "")
    assert all(file.text is None for file in planned.files)


def test_one_card_that_cannot_does_not_stop_the_others() -> None:
    planned = plan(GTX1080, gpu(1), gpu_settings_clocks="max")
    assert script(planned) == ["-lgc 1410,1410", "-lmc 1593,1593"]
    assert planned.settings[0].unsupported


def test_a_memory_clock_without_a_lock_is_named_and_graphics_still_set() -> None:
    planned = plan(T4, gpu_settings_clocks={"graphics": 645, "memory": 405})
    assert script(planned) == ["-lgc 645,645"]
    assert "405 MHz (Turing has no memory lock)" in (planned.settings[0].unsupported or "")


def test_a_clock_that_the_card_does_not_have_is_refused_with_the_nearest() -> None:
    refused = plan(gpu_settings_clocks={"graphics": 1400}).refused
    assert refused is not None
    assert "1395 and 1410" in refused
    assert "GPU 0 (NVIDIA A100-SXM4-80GB)" in refused
    assert "its range is 210 to 1410" in refused
    assert "no memory clock of 1600 MHz" in str(plan(gpu_settings_clocks={"memory": 1600}).refused)


@pytest.mark.parametrize(
    "asked", ["fast", {}, {"gpu": 1}, {"graphics": "1410"}, {"graphics": -1}, {"graphics": True}, 1410, None]
)
def test_a_value_of_another_shape_is_refused(asked: Any) -> None:
    assert "gpu_settings_clocks" in str(plan(gpu_settings_clocks=asked).refused)


def test_two_kinds_of_card_get_values_of_their_own_by_their_own_name() -> None:
    planned = plan(gpu(0), V100, gpu_settings_clocks="max")
    assert script(planned) == ["-lgc 1410,1410", "-lmc 1593,1593", "-lgc 1530,1530"]
    text_of = {file.path: file.text for file in planned.files}[SCRIPT]
    assert f"-i {V100.uuid} -lgc" in str(text_of)


def test_application_clocks_that_are_not_as_set_start_the_unit_again() -> None:
    running = unit(CLOCKS_UNIT, "active", "enabled")
    items = {"units": said(f"{DAEMON}\n\n{running}\n")}
    assert plan(P100, items=items, gpu_settings_clocks="max").restart == (CLOCKS_UNIT,)
    assert plan(P100, items=items, gpu_settings_clocks="base").restart == ()


def test_no_clocks_any_more_stops_our_unit_and_removes_its_files() -> None:
    running = unit(CLOCKS_UNIT, "active", "enabled")
    planned = plan(items={"units": said(f"{DAEMON}\n\n{running}\n"), f"file:{UNIT_FILE}": text("x")})
    assert (CLOCKS_UNIT, False, False) in [(u.name, u.enabled, u.active) for u in planned.units]
    assert {UNIT_FILE, SCRIPT} <= {f.path for f in planned.files if f.text is None}


@pytest.mark.parametrize(
    ("items", "says"),
    [
        ({"pci": pci()}, "no NVIDIA GPU"),
        ({"units": MISSING}, "no systemd"),
        ({"units": said(f"{unit('nvidia-persistenced.service', '', '')}\n")}, "is not installed"),
        ({"pci": {"timed_out": True}, "lspci": {"timed_out": True}}, "not known"),
    ],
)
def test_what_is_not_there_is_refused(items: dict[str, Any], says: str) -> None:
    assert says in str(plan(items=items).refused)


def test_a_driver_that_does_not_answer_refuses_clocks_only() -> None:
    silent = facts()
    assert gpu_settings.wanted(silent, profile(), stack()).refused is None
    assert "does not answer" in str(
        gpu_settings.wanted(silent, profile(gpu_settings_clocks="max"), stack()).refused
    )


@pytest.mark.parametrize(
    ("says", "rc", "status", "calls"),
    [
        ("All done.", 0, 0, 2),
        (
            "Setting applications clocks is not supported for GPU 0.\nTreating as warning and moving on.\nAll done.",
            0,
            1,
            2,
        ),
        ("Requested functionality has been deprecated", 3, 1, 2),
    ],
)
def test_the_script_believes_words_more_than_the_exit_status(
    tmp_path: Path, says: str, rc: int, status: int, calls: int
) -> None:
    """nvidia-smi ends with 0 where a setting is not supported (sasha0552/nvidia-pstated issue 6)."""
    stand_in = tmp_path / "nvidia-smi"
    stand_in.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/calls\nprintf \'%s\\n\' "{says}"\nexit {rc}\n')
    stand_in.chmod(0o755)
    ours = tmp_path / "clocks"
    ours.write_text(str({f.path: f.text for f in plan(gpu(0), gpu_settings_clocks="max").files}[SCRIPT]))
    done = subprocess.run(
        ["/bin/sh", ours, "set"], env={"PATH": f"{tmp_path}:/usr/bin:/bin"}, capture_output=True
    )
    assert done.returncode == status
    assert len((tmp_path / "calls").read_text().splitlines()) == calls


def test_what_is_not_named_is_left_alone() -> None:
    planned = plan(gpu_settings_clocks="max")
    assert not any(argv[0] in ("-pl", "-e", "-c", "-mig") for s in planned.settings for argv in s.set)
    assert all(not given for given in planned.named.values())


@pytest.mark.parametrize(
    ("variables", "calls"),
    [
        ({"gpu_settings_power_limit": 300}, ["-pl 300"]),
        ({"gpu_settings_power_limit": 250.5}, ["-pl 250.5"]),
        ({"gpu_settings_compute_mode": "exclusive_process"}, ["-c 3"]),
        ({"gpu_settings_ecc": False}, ["-e 0"]),
        ({"gpu_settings_mig": True}, ["-mig 1"]),
        ({"gpu_settings_mig": False, "gpu_settings_power_limit": 300, "gpu_settings_clocks": {"graphics": 1410}},
         ["-mig 0", "-pl 300", "-lgc 1410,1410"]),
    ],
)  # fmt: skip
def test_what_is_named_is_given_to_the_card(variables: dict[str, Any], calls: list[str]) -> None:
    assert script(plan(gpu(0), **variables)) == calls


def test_a_limit_and_a_compute_mode_are_taken_back_and_the_cards_own_modes_are_not() -> None:
    planned = plan(gpu(0), gpu_settings_power_limit=300, gpu_settings_compute_mode="prohibited",
                   gpu_settings_ecc=False, gpu_settings_mig=True)  # fmt: skip
    text_of = str({file.path: file.text for file in planned.files}[SCRIPT])
    reset = text_of.partition("reset)\n")[2].partition(";;")[0]
    assert [line.split()[3:] for line in reset.splitlines() if "apply" in line] == [
        ["-c", "0"],
        ["-pl", "400"],
    ]


def test_other_values_first_have_the_unit_take_back_the_old_ones() -> None:
    running = {"units": said(f"{DAEMON}\n\n{unit(CLOCKS_UNIT, 'active', 'enabled')}\n")}
    first = plan(items=running, gpu_settings_power_limit=300)
    text_of = {file.path: file.text for file in first.files}[SCRIPT]
    items = {**running, f"file:{SCRIPT}": text(str(text_of))}
    assert plan(items=items, gpu_settings_power_limit=300).stop_first == ()
    assert plan(items=items, gpu_settings_power_limit=250).stop_first == (CLOCKS_UNIT,)
    assert first.stop_first == ()


@pytest.mark.parametrize(
    ("card", "variables", "variable", "wrong", "waits"),
    [
        ({}, {"gpu_settings_power_limit": 300}, "gpu_settings_power_limit", 1, 0),
        ({"power": Power(60.0, 300.0, 400.0, 100.0, 400.0)}, {"gpu_settings_power_limit": 300}, "gpu_settings_power_limit", 0, 0),
        ({"compute_mode": "Exclusive_Process"}, {"gpu_settings_compute_mode": "exclusive_process"}, "gpu_settings_compute_mode", 0, 0),
        ({"ecc": Ecc(Mode(True, False), *(NOT_TOLD,) * 5)}, {"gpu_settings_ecc": False}, "gpu_settings_ecc", 0, 1),
        ({"mig": Mig(Mode(True, True), ())}, {"gpu_settings_mig": True}, "gpu_settings_mig", 0, 0),
        ({"mig": Mig(Mode(False, True), ())}, {"gpu_settings_mig": True}, "gpu_settings_mig", 0, 1),
        ({"mig": Mig(Mode(False, True), ())}, {"gpu_settings_mig": False}, "gpu_settings_mig", 1, 0),
    ],
)  # fmt: skip
def test_what_the_card_says_is_read_back(
    card: dict[str, Any], variables: dict[str, Any], variable: str, wrong: int, waits: int
) -> None:
    given = plan(gpu(0, **card), **variables).named[0][variable]
    assert (len(given.wrong), len(given.waits)) == (wrong, waits)


def test_a_card_that_has_no_such_thing_is_an_answer_and_no_unit() -> None:
    none = Unsupported("N/A", "nvidia-smi.query")
    card = gpu(
        0,
        mig=Mig(Mode(none, none), ()),
        ecc=Ecc(Mode(none, none), *(NOT_TOLD,) * 5),
        power=Power(*(none,) * 5),
    )
    planned = plan(card, gpu_settings_mig=True, gpu_settings_ecc=True, gpu_settings_power_limit=300)
    assert planned.refused is None
    assert all("not supported on this card" in given.unsupported[0] for given in planned.named[0].values())
    assert all(file.text is None for file in planned.files)


@pytest.mark.parametrize(
    ("variables", "says"),
    [
        ({"gpu_settings_power_limit": 50}, "takes a power limit of 100 to 400 W, and not 50"),
        ({"gpu_settings_power_limit": -1}, "is a number of W"),
        ({"gpu_settings_power_limit": True}, "is a number of W"),
        ({"gpu_settings_compute_mode": "exclusive"}, "it can be default, prohibited, exclusive_process"),
        ({"gpu_settings_ecc": "on"}, "it is true, false, or not set"),
        (
            {"gpu_settings_mig": True, "gpu_settings_persistence": False},
            "gpu_settings_mig: the unit that gives",
        ),
    ],
)
def test_a_value_that_cannot_be_given_is_refused(variables: dict[str, Any], says: str) -> None:
    assert says in str(plan(gpu(0), **variables).refused)
