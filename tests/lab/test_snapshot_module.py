"""Snapshots on a lab host with packages of a few kilobytes: the way back holds without an archive, after
failures and after kills, and touches nothing that is not ours."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest
import tiny_archive
from plays import Controller, wait_for

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from provision.lab import LabHost

ROOT = "var/lib/gpu-provision/snapshots"
# Everything that a way back answers for, and the packages of all others.
SEEN = (
    "dpkg-query -W -f='${db:Status-Abbrev} ${Package} ${Version}\\n'; apt-mark showhold; "
    "apt-mark showmanual; cat /etc/nccl.conf /etc/modules-load.d/gp.conf 2>&1; "
    "stat -c %a /etc/nccl.conf 2>&1; true"
)
PATHS = ["/etc/nccl.conf", "/etc/modules-load.d/gp.conf"]


pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def machine(lab_up: Callable[..., LabHost]) -> LabHost:
    host = lab_up()
    put = tiny_archive.package
    for version in ("1.0-1", "2.0-1"):
        put(host, "nvidia-gp", version, Depends=f"nvidia-gp-part (= {version})")
        put(host, "nvidia-gp-part", version)
    put(host, "nvidia-gp", "3.0-1", Depends="gp-new", postinst="[ -e /gp-mended ]")
    put(host, "nvidia-gp", "4.0-1", Depends="gp-new", postinst="sleep 8")
    put(host, "gp-new")
    put(host, "gp-theirs")
    tiny_archive.only_source(host)
    tiny_archive.fetch(host)
    (host.root / "etc/nccl.conf").write_text("NCCL_DEBUG=WARN\n")
    (host.root / "etc/nccl.conf").chmod(0o640)
    return host


@pytest.fixture
def control(machine: LabHost, tmp_path: Path) -> Controller:
    return Controller(tmp_path, machine)


def move(control: Controller, version: str) -> dict[str, Any]:
    names = ["nvidia-gp", "nvidia-gp-part"] if version < "3" else ["nvidia-gp"]
    packages = [f"{name}={version}" for name in names]
    task = {"packages": packages, "holds": names, "set": "nvidia_driver", "absent": ["nvidia-gp-part"]}
    if version < "3":
        task["absent"] = []
    return control.run({"gpu_provision.host.apt_transaction": task})


def keep(control: Controller, name: str, **more: Any) -> dict[str, Any]:
    return control.run({"gpu_provision.host.snapshot": {"name": name, "paths": PATHS, **more}})


def back(control: Controller, name: str, **more: Any) -> dict[str, Any]:
    return control.run({"gpu_provision.host.snapshot_restore": {"name": name}}, **more)


@pytest.fixture
def old(control: Controller) -> str:
    """What the host is with the first release, of which there is the snapshot `old`."""
    if not (control.host.root / ROOT / "old").is_dir():
        assert not move(control, "1.0-1").get("failed")
        told = keep(control, "old")
        assert told["changed"], told
        assert sum(told["debs"].values()) == 2
    else:
        back(control, "old")
    return control.shell(SEEN)


def test_a_snapshot_is_taken_once_and_check_mode_takes_none(control: Controller, old: str) -> None:
    assert not keep(control, "old")["changed"]
    assert control.start({"gpu_provision.host.snapshot": {"name": "dry"}}, check=True).result()["changed"]
    assert not (control.host.root / ROOT / "dry").exists()
    assert not keep(control, "")["changed"], "without a name one is only taken where there is none"


def test_back_without_an_archive_and_what_others_did_stays(control: Controller, old: str) -> None:
    move(control, "2.0-1")
    (control.host.root / "etc/nccl.conf").write_text("NCCL_DEBUG=INFO\n")
    (control.host.root / "etc/modules-load.d/gp.conf").write_text("nvidia\n")
    control.shell("apt-get install -qy gp-theirs; apt-mark hold gp-theirs")
    shutil.move(control.host.root / "srv/archive", control.host.root / "srv/away")
    told = back(control, "old")
    shutil.move(control.host.root / "srv/away", control.host.root / "srv/archive")
    assert not told.get("failed"), told["msg"]
    assert told["returned"] == ["nvidia-gp", "nvidia-gp-part"]
    assert any("gp-theirs" in line for line in told["others"])
    assert "gp-theirs" in control.shell("apt-mark showhold")
    control.shell("apt-mark unhold gp-theirs; dpkg --purge gp-theirs")
    assert control.shell(SEEN) == old
    assert not back(control, "old")["changed"]


def test_what_came_by_us_goes_again_and_a_package_without_an_archive_is_packed_again(
    control: Controller, old: str
) -> None:
    control.shell("touch /gp-mended; rm -f /var/cache/apt/archives/*.deb")
    assert not move(control, "3.0-1").get("failed")
    index = control.host.root / "srv/archive/Packages"
    whole = index.read_text()
    index.write_text("\n\n".join(e for e in whole.split("\n\n") if "Version: 3.0-1" not in e))
    tiny_archive.fetch(control.host)
    told = keep(control, "third")
    index.write_text(whole)
    tiny_archive.fetch(control.host)
    assert told["debs"] == {"repacked": 1, "archive": 1}, told
    third = control.shell(SEEN)
    assert not back(control, "old").get("failed")
    assert control.shell(SEEN) == old
    told = back(control, "third")
    assert not told.get("failed"), told["msg"]
    assert [line for line in control.shell(SEEN).splitlines() if "nvidia-gp" in line] == [
        line for line in third.splitlines() if "nvidia-gp" in line
    ]
    control.shell("rm /gp-mended")


def test_a_postinst_that_fails_is_gone_after_the_way_back(control: Controller, old: str) -> None:
    told = move(control, "3.0-1")
    assert "Half-configured: nvidia-gp" in told["msg"]
    assert not back(control, "old").get("failed")
    assert control.shell(SEEN) == old


def test_a_controller_that_is_killed_on_the_way_there_or_back_leaves_a_way_back(
    control: Controller, old: str
) -> None:
    absent = ["nvidia-gp-part"]
    task = {"packages": ["nvidia-gp=4.0-1"], "holds": ["nvidia-gp"], "absent": absent, "set": "nvidia_driver"}
    running = control.start({"gpu_provision.host.apt_transaction": task})
    wait_for(lambda: "sleep 8" in control.shell("ps -eo args"), 60, "the new release is being configured")
    running.kill()
    running = control.start({"gpu_provision.host.snapshot_restore": {"name": "old"}})
    wait_for(lambda: (control.host.root / ROOT / "restoring.json").exists(), 60, "the way back has begun")
    running.kill()
    assert not back(control, "old").get("failed")
    assert control.shell(SEEN) == old
    assert not (control.host.root / ROOT / "restoring.json").exists()


def test_no_room_is_no_snapshot_and_a_failure_that_touched_nothing(control: Controller, old: str) -> None:
    control.shell(f"mkdir -p /{ROOT}; mount -t tmpfs -o size=1m none /{ROOT}")
    told = keep(control, "full")
    spared = keep(control, "full", required=False)
    control.shell(f"umount /{ROOT}")
    assert told["failed"], told
    assert "not enough room" in told["msg"]
    assert told["state"] == "untouched"
    assert not spared.get("failed")
    assert not spared["changed"]


def test_a_snapshot_that_is_not_there_is_refused_with_those_that_are(control: Controller, old: str) -> None:
    told = back(control, "gone")
    assert told["failed"]
    assert "there is no whole snapshot gone" in told["msg"]
    assert "old" in told["msg"]


def test_a_snapshot_outside_of_the_host_is_kept_with_ours_and_without_it_there_is_none(
    control: Controller, old: str
) -> None:
    code, said = control.role("snapshot", snapshot_name="outer", snapshot_command="sh -c 'echo no; exit 7'")
    assert code == 2
    assert "ended with 7, so there is no snapshot" in said
    assert not (control.host.root / ROOT / "outer").exists()
    script = "sh -c 'echo working; echo snap-of-$GPU_PROVISION_SNAPSHOT'"
    code, said = control.role("snapshot", snapshot_name="outer", snapshot_command=script)
    assert code == 0, said
    kept = json.loads((control.host.root / ROOT / "outer" / "snapshot.json").read_text())
    assert kept["outside"] == {"command": script, "rc": 0, "identifier": "snap-of-outer"}
    recording = json.loads((control.host.root / ROOT / "outer" / "recording.json").read_text())
    assert recording["schema"] == "gpu-provision/recording/1"
