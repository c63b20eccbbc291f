"""Upgrades of a lab host over the branches of the test archive: moved, proven, taken back, broken off."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from plays import descendants, wait_for

from provision.transport import ssh

if TYPE_CHECKING:
    from collections.abc import Callable

    from archive.served import Archive

    from provision.lab import LabHost

SECONDS = 600
# The double has a loaded module, too: another release of it runs from the next boot on.
ALWAYS = ("--yes", "--format", "json", "--reboot", "allow")
# All that a way back answers for.
SEEN = (
    "dpkg-query -W -f='${db:Status-Abbrev} ${Package} ${Version}\\n'; apt-mark showhold; "
    "apt-mark showmanual; dkms status; cd /etc; "
    "sha256sum apt/sources.list.d/* apt/preferences.d/* apt/keyrings/* modprobe.d/*; true"
)
AFTER_DPKG = "etc/apt/apt.conf.d/99-test"


class Desk:
    """A machine that upgrades one lab host by the command, with the archive as NVIDIA's repository."""

    def __init__(self, folder: Path, host: LabHost, archive: Archive) -> None:
        self.folder, self.host = folder, host
        self.profile = folder / "profile.yml"
        variables = {"nvidia_driver_repository": archive.cuda, "nvidia_driver_repository_key": archive.key}
        self.profile.write_text(yaml.safe_dump(variables))

    def start(self, command: str, *words: str) -> subprocess.Popen[str]:
        kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
        program = Path(sys.executable).with_name("gpu-provision")
        return subprocess.Popen(
            [
                program,
                command,
                self.host.name,
                *words,
                "--profile",
                self.profile,
                *ALWAYS,
            ],
            env={**kept, "HOME": str(self.folder)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=(self.folder / "said").open("w"),
            text=True,
            start_new_session=True,
        )

    def run(self, command: str, *words: str) -> tuple[int, dict[str, Any]]:
        """Exit code, and what the report says of the host; under `said` what went to standard error."""
        running = self.start(command, *words)
        out, _ = running.communicate(timeout=SECONDS)
        said = (self.folder / "said").read_text()
        host = json.loads(out)["hosts"][0] if out else {}
        print(host.get("trouble"), host.get("reboot"), said[-4000:], sep="\n")  # shown where a test fails
        return running.returncode, {**host, "said": said}

    def to(self, branch: int) -> None:
        code, told = self.run("apply", "--only", "nvidia_driver", "--set", f"nvidia_driver_branch={branch}")
        assert code == 0, told

    def kill(self, running: subprocess.Popen[str]) -> None:
        """As a power cut at the desk would."""
        for pid in [running.pid, *descendants(running.pid)]:
            os.kill(pid, signal.SIGKILL)
        running.communicate()

    def shell(self, command: str) -> str:
        argv = [*ssh.fresh_args(self.host.target()), command]
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True)
        return done.stdout

    def release(self) -> str:
        return self.shell("dpkg-query -W -f='${Version}' nvidia-kernel-open-dkms").partition("-")[0]


pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def made(lab_up: Callable[..., LabHost]) -> LabHost:
    return lab_up()


@pytest.fixture
def desk(made: LabHost, archive: Archive, tmp_path: Path) -> Desk:
    """The host at 580, whatever the test before left."""
    desk = Desk(tmp_path, made, archive)
    (made.root / AFTER_DPKG).unlink(missing_ok=True)
    desk.shell("gpu-double clear")
    desk.to(580)
    return desk


def test_a_gpu_that_is_lost_by_the_move_takes_the_host_back(desk: Desk) -> None:
    before = desk.shell(SEEN)
    # Once the new release is there, one GPU answers no more; with the old one it does again.
    (desk.host.root / AFTER_DPKG).write_text(
        'DPkg::Post-Invoke {"dpkg-query -W -f=\\${Version} nvidia-kernel-open-dkms | grep -q ^595'
        ' && gpu-double fault lost 1 || gpu-double clear";};\n'
    )
    code, told = desk.run("upgrade", "--driver", "595")
    assert (code, told["state"]) == (1, "reverted"), told
    assert "the host was put back to" in told["trouble"]
    assert "does not hold either" not in told["trouble"]
    (desk.host.root / AFTER_DPKG).unlink()
    assert desk.shell(SEEN) == before


@pytest.mark.full
def test_from_branch_to_branch_and_back_the_same_way(desk: Desk) -> None:
    at_580 = desk.shell(SEEN)
    code, told = desk.run("upgrade", "--driver", "595")
    assert (code, told["state"]) == (0, "done"), told
    assert "move nvidia-kernel-open-dkms from 580" in told["said"]
    assert desk.release().startswith("595.")
    at_595 = desk.shell(SEEN)
    code, told = desk.run("upgrade", "--driver", "570")
    assert (code, told["state"]) == (0, "done"), told
    assert desk.release().startswith("570.")
    code, told = desk.run("rollback")
    assert (code, told["state"]) == (0, "done"), told
    assert desk.shell(SEEN) == at_595
    names = desk.shell("ls /var/lib/gpu-provision/snapshots").split()
    [first_upgrade] = [name for name in names if name.endswith("-upgrade")][:1]
    code, told = desk.run("rollback", first_upgrade)
    assert (code, told["state"]) == (0, "done"), told
    assert desk.shell(SEEN) == at_580


@pytest.mark.full
def test_a_release_that_no_archive_has_leaves_the_host_as_it_was(desk: Desk) -> None:
    before = desk.shell(SEEN)
    code, told = desk.run("upgrade", "--driver", "595.90.01")
    assert code == 1, told
    assert told["state"] in ("untouched", "reverted")
    assert desk.shell(SEEN) == before


@pytest.mark.full
def test_a_snapshot_command_that_fails_leaves_the_host_untouched(desk: Desk) -> None:
    before = desk.shell(SEEN)
    code, told = desk.run("upgrade", "--driver", "595", "--set", "snapshot_command=exit 7")
    assert (code, told["state"]) == (1, "untouched"), told
    assert "there is no snapshot" in told["trouble"]
    assert desk.shell(SEEN) == before


@pytest.mark.full
@pytest.mark.parametrize("then", ["resume", "rollback"])
def test_a_desk_that_dies_in_the_middle_is_gone_on_with_or_taken_back(desk: Desk, then: str) -> None:
    before = desk.shell(SEEN)
    running = desk.start("upgrade", "--driver", "595")
    wait_for(lambda: "dpkg --" in desk.shell("ps -eo args"), SECONDS, "the transaction runs")
    desk.kill(running)
    states = max((desk.folder / ".local/state/gpu-provision/runs").glob("*-upgrade*")) / "state.json"
    assert json.loads(states.read_text())["hosts"] == {desk.host.name: "partial"}
    if then == "resume":
        code, told = desk.run("upgrade", "--driver", "595", "--resume")
        assert (code, told["state"]) == (0, "done"), told
        assert desk.release().startswith("595.")
        code, told = desk.run("rollback")
    else:
        code, told = desk.run("rollback")
    assert (code, told["state"]) == (0, "done"), told
    assert desk.shell(SEEN) == before
