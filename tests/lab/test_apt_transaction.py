"""The package transaction on a lab host: simulated, refused, waited for, cut off, broken and finished."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import tiny_archive
from plays import Controller, wait_for

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from provision.lab import LabHost

UNIT = "gpu-provision-packages.service"


@pytest.fixture(scope="module")
def machine(lab_up: Callable[..., LabHost]) -> LabHost:
    host = lab_up()
    put = tiny_archive.package
    put(host, "gp-plain", Depends="gp-part")
    put(host, "gp-part")
    put(host, "gp-slow", postinst="sleep 8")
    put(host, "gp-one", postinst="sleep 6")
    put(host, "gp-two", postinst="sleep 6")
    put(host, "gp-broken", postinst="[ -e /gp-mended ]")
    put(host, "gp-foreign", postinst="[ -e /gp-mended ]")
    put(host, "gp-kernel", Depends="linux-image-9.9.9-test")
    put(host, "linux-image-9.9.9-test")
    put(host, "gp-rival", Conflicts="cron")
    put(host, "nvidia-smi", "470.256.02-1")
    put(host, "gp-driver", Depends="nvidia-smi")
    put(host, "gp-old", "2.0-1")
    tiny_archive.only_source(host)
    tiny_archive.fetch(host)
    return host


@pytest.fixture
def control(machine: LabHost, tmp_path: Path) -> Controller:
    return Controller(tmp_path, machine)


def task(*packages: str, **more: Any) -> dict[str, Any]:
    return {"gpu_provision.host.apt_transaction": {"packages": list(packages), **more}}


def state(control: Controller, name: str) -> str:
    return control.shell(
        f"dpkg-query -W -f='${{db:Status-Abbrev}} ${{Version}}' {name} 2>/dev/null || true"
    ).strip()


def test_check_mode_tells_what_would_come_and_changes_nothing(control: Controller) -> None:
    told = control.start(task("gp-plain"), check=True).result()
    assert told["changed"]
    assert {step["name"] for step in told["steps"]} == {"gp-plain", "gp-part"}
    assert state(control, "gp-plain") == ""


def test_installs_holds_and_has_nothing_to_do_after(control: Controller) -> None:
    first = control.run(task("gp-plain=1.0-1", holds=["gp-plain"]))
    assert first["changed"], first
    assert state(control, "gp-plain") == "hi  1.0-1"
    assert control.shell(f"cat {first['log']}/rc").strip() == "0"
    second = control.run(task("gp-plain=1.0-1", holds=["gp-plain"]))
    assert not second["changed"]
    assert "log" not in second, "no unit was started"


def test_one_sets_holds_outlive_another_sets_transaction(control: Controller) -> None:
    def held() -> set[str]:
        return set(control.shell("apt-mark showhold").split()) & {"gp-set-a", "gp-set-b", "gp-set-c"}

    for name in ("gp-set-a", "gp-set-b", "gp-set-c"):
        tiny_archive.package(control.host, name)
    tiny_archive.fetch(control.host)
    control.run(task("gp-set-a", "gp-set-b", holds=["gp-set-a", "gp-set-b"], set="one"))
    control.run(task("gp-set-b", "gp-set-c", holds=["gp-set-b", "gp-set-c"], set="two"))
    assert held() == {"gp-set-a", "gp-set-b", "gp-set-c"}
    again = control.run(task("gp-set-a", "gp-set-b", holds=["gp-set-a", "gp-set-b"], set="one"))
    assert not again["changed"]
    control.run(task("gp-set-a", holds=["gp-set-a"], set="one"))
    assert held() == {"gp-set-a", "gp-set-b", "gp-set-c"}, "the other set still wants what is in both"
    control.run(task("gp-set-c", holds=["gp-set-c"], set="two"))
    assert held() == {"gp-set-a", "gp-set-c"}


@pytest.mark.parametrize(
    ("packages", "more", "says"),
    [
        (["gp-kernel"], {}, "the kernel would change"),
        (["gp-rival"], {}, "it would remove cron"),
        (["gp-driver"], {"branch": 535}, "another branch than 535 would come: nvidia-smi"),
        (["gp-nothing"], {}, "Unable to locate package gp-nothing"),
        (["linux-headers-9.9.9-none"], {}, "Kernel 9.9.9-none has no headers"),
        (["gp-plain=7"], {}, "'7' for 'gp-plain' was not found"),
    ],
)
def test_refuses_before_anything_is_changed(
    control: Controller, packages: list[str], more: dict[str, Any], says: str
) -> None:
    before = control.shell("dpkg-query -W; ls /var/lib/gpu-provision/packages 2>/dev/null || true")
    told = control.run(task(*packages, **more))
    assert told["failed"]
    assert says in told["msg"]
    assert "nothing was changed" in told["msg"]
    assert control.shell("dpkg-query -W; ls /var/lib/gpu-provision/packages 2>/dev/null || true") == before


def test_what_is_named_may_be_removed(control: Controller) -> None:
    told = control.run(task("gp-rival", absent=["cron"]))
    assert told["changed"], told
    assert not state(control, "cron").startswith("ii")
    control.shell("dpkg -r gp-rival")


def test_a_hold_of_somebody_else_is_respected_and_one_of_ours_lifted(control: Controller) -> None:
    control.shell("apt-get install -qy gp-old && apt-mark hold gp-old")
    tiny_archive.package(control.host, "gp-old", "3.0-1")
    told = control.run(task("gp-old=3.0-1", refresh=True))
    assert "held by somebody else" in told["msg"]
    told = control.run(task("gp-old=3.0-1", holds=["gp-old"]))
    assert told["changed"], told
    assert state(control, "gp-old") == "hi  3.0-1"


def test_going_back_has_to_be_named(control: Controller) -> None:
    tiny_archive.package(control.host, "gp-wants", Depends="gp-old (<< 3)")
    told = control.run(task("gp-wants", holds=["gp-old"], refresh=True))
    assert "unmet dependencies" in told["msg"]
    told = control.run(task("gp-wants", "gp-old=2.0-1", holds=["gp-old"]))
    assert told["changed"], told
    assert state(control, "gp-old") == "hi  2.0-1"


HOLD_LOCK = (
    "python3 -c \"import fcntl,time; f=open('/var/lib/dpkg/lock-frontend','w'); "
    'fcntl.lockf(f, fcntl.LOCK_EX); time.sleep({})" >/dev/null 2>&1 </dev/null &'
)


def test_a_lock_is_waited_for_and_its_holder_named(control: Controller) -> None:
    control.shell(HOLD_LOCK.format(30))
    late = control.run(task("gp-driver", lock_timeout=2))
    assert late["failed"]
    assert "lock-frontend is held by process" in late["msg"]
    assert "fcntl.lockf" in late["msg"]
    control.shell("pkill -x -f 'python3 -c import fcntl.*'; true")
    control.shell(HOLD_LOCK.format(25))
    told = control.run(task("gp-driver"))
    assert told["changed"], told
    assert told["waited"] > 0
    assert "python3" in told["held_by"]["command"]


def test_a_disk_without_room_is_told_before(control: Controller) -> None:
    told = control.run(task("gp-slow", kernels=["9.9.9"], build_space=10**15))
    assert told["failed"]
    assert "Not enough room" in told["msg"]
    assert state(control, "gp-slow") == ""


def test_a_killed_controller_interrupts_nothing_and_the_next_run_reads_the_result(
    control: Controller,
) -> None:
    play = control.start(task("gp-slow"))
    wait_for(lambda: "gp-slow" in control.shell("ps -eo args"), 60, "the transaction runs")
    play.kill()
    told = control.run(task("gp-slow"))
    assert told["resumed"], told
    assert not told.get("failed")
    assert state(control, "gp-slow").startswith("ii")


def test_two_runs_at_once_go_one_after_the_other(machine: LabHost, tmp_path: Path) -> None:
    controllers = [Controller(tmp_path / name, machine) for name in ("one", "two")]
    plays = [c.start(task(f"gp-{name}")) for c, name in zip(controllers, ("one", "two"), strict=True)]
    for running in plays:
        told = running.result()
        assert not told.get("failed"), told
    assert [state(controllers[0], name)[:2] for name in ("gp-one", "gp-two")] == ["ii", "ii"]


def test_a_failing_package_is_told_in_dpkgs_words_and_finished_by_the_next_run(control: Controller) -> None:
    told = control.run(task("gp-broken"))
    assert told["failed"]
    assert "gp-broken" in told["msg"]
    assert "Half-configured: gp-broken" in told["msg"]
    control.shell("touch /gp-mended")
    told = control.run(task("gp-broken"))
    assert told["repaired"] == ["gp-broken"]
    assert state(control, "gp-broken").startswith("ii")
    control.shell("rm /gp-mended")


def test_what_somebody_else_left_half_way_is_not_touched(control: Controller) -> None:
    control.shell("apt-get install -qy gp-foreign >/dev/null 2>&1 || true")
    told = control.run(task("gp-plain=2.0-1"))
    assert "not ours to finish" in told["msg"]
    assert "gp-foreign" in told["msg"]
