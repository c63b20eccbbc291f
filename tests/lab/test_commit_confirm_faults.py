"""Faults at each step of commit_confirm on a lab host. After each of them a key gets in by plain OpenSSH,
and the state that is reported is the one that the host is in."""

from __future__ import annotations

import subprocess
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from plays import STATE, Controller, wait_for

from provision.transport import ssh

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provision.lab import LabHost

DROP_IN = "etc/ssh/sshd_config.d/00-test.conf"
LOCKED = "PasswordAuthentication no\nKbdInteractiveAuthentication no\n"
# It lets nobody in, and sshd -t finds nothing wrong with it.
SHUT = "AllowUsers nobody-of-this-name\n"


@pytest.fixture
def control(lab_host: LabHost, tmp_path: Path) -> Iterator[Controller]:
    controller = Controller(tmp_path, lab_host)
    before = controller.shell(
        "cat /etc/ssh/sshd_config /etc/ssh/sshd_config.d/* 2>/dev/null; ls -A /etc/ssh/*.d"
    )
    yield controller
    assert controller.login().holds, "the administrator gets in after everything"
    controller.shell(f"rm -rf /{DROP_IN} /{STATE} && systemctl reload ssh.service")
    wait_for(lambda: controller.login().holds, 10, "sshd listens again")
    assert before == controller.shell(
        "cat /etc/ssh/sshd_config /etc/ssh/sshd_config.d/* 2>/dev/null; ls -A /etc/ssh/*.d"
    )


def change(text: str = LOCKED, **more: Any) -> dict[str, Any]:
    arguments = {
        "name": "a test",
        "seconds": 8,
        "files": [{"path": f"/{DROP_IN}", "text": text, "mode": "0600"}],
        "validate": [{"command": "sshd -t"}],
        "reload": ["systemctl reload ssh.service"],
        "units": ["ssh.service"],
        "prove": {"password_refused": True},
        **more,
    }
    return {"gpu_provision.host.commit_confirm": arguments}


def tidy(control: Controller) -> bool:
    """Nothing of an unfinished change is left on the host."""
    left = control.shell(
        "find /etc -name '*gpu-provision*' -not -path '/etc/gpu-provision*'; "
        "systemctl list-units --all --no-legend 'gpu-provision-revert*.timer'"
    )
    return left.split() == []


def test_done_is_kept_and_a_second_run_changes_nothing(control: Controller) -> None:
    checked = control.run(change(), check=True)
    assert checked["changed"]
    assert checked["state"] == "untouched"
    assert not (control.host.root / DROP_IN).exists()
    told = control.run(change())
    assert told["state"] == "done", told
    assert told["proofs"][-1] == "after: a password is refused; the server offers publickey only"
    assert (control.host.root / DROP_IN).read_text() == LOCKED
    assert tidy(control)
    time.sleep(9)
    assert (control.host.root / DROP_IN).read_text() == LOCKED, "the timer is gone"
    again = control.run(change())
    assert again["changed"] is False
    status = control.run({"gpu_provision.host.commit_confirm": {"operation": "status"}})
    assert (status["state"], status["last"]["state"]) == ("idle", "done")


def test_a_change_that_shuts_out_is_reverted_at_once(control: Controller) -> None:
    started = time.monotonic()
    told = control.run(change(SHUT, seconds=120))
    assert told["failed"]
    assert told["state"] == "reverted"
    assert "Permission denied" in told["msg"]
    assert told["proofs"][-1] == "put back: a fresh login with a key alone works"
    assert time.monotonic() - started < 60, "nobody waits for the timer while the line stands"
    assert not (control.host.root / DROP_IN).exists()
    assert tidy(control)


def test_passwords_that_stay_open_are_no_success(control: Controller) -> None:
    told = control.run(change("PasswordAuthentication yes\n"))
    assert told["state"] == "reverted"
    assert "still offers password" in told["msg"]


def test_no_key_no_change(lab_host: LabHost, control: Controller, tmp_path: Path) -> None:
    """The play itself gets in over a connection that stands; a fresh login does not."""
    control.shell("mv /root/.ssh/authorized_keys /root/.ssh/aside")
    root = lab_host.root / "root/.ssh"
    try:
        (root / "aside").rename(root / "authorized_keys")
        play = control.start(change())
        wait_for(lambda: bool(list(Path("/tmp/gpu-cp").glob("*"))), 30, "the play connected")
        (root / "authorized_keys").rename(root / "aside")
        told = play.result()
    finally:
        if (root / "aside").exists():
            (root / "aside").rename(root / "authorized_keys")
    assert told["failed"]
    assert told["state"] == "untouched"
    assert "fresh login with a key alone does not work" in told["msg"]
    assert control.stages() == []


@pytest.mark.parametrize("step", ["validate", "prove"])
def test_killed_controller(control: Controller, step: str) -> None:
    if step == "validate":
        play = control.start(change(SHUT, validate=[{"command": "sleep 4"}]))
        wait_for(lambda: "armed" in control.stages(), 60, "armed")
        play.kill()
    else:
        with control.holding():
            play = control.start(change(SHUT))
            wait_for(
                lambda: (control.folder / "proved").exists() and "armed" in control.stages(), 60, "armed"
            )
            wait_for(lambda: not control.login().holds, 30, "reloaded")
            play.kill()
    wait_for(lambda: control.stages() == ["reverted"], 40, "reverted")
    wait_for(lambda: control.login().holds, 20, "a key gets in")
    assert not (control.host.root / DROP_IN).exists()
    assert tidy(control)


@pytest.mark.parametrize("text", [pytest.param(LOCKED, marks=pytest.mark.full), SHUT], ids=["good", "shut"])
def test_network_cut_in_the_armed_window(control: Controller, text: str) -> None:
    play = control.start(change(text, validate=[{"command": "sleep 2"}]))
    wait_for(lambda: "armed" in control.stages(), 60, "armed")
    subprocess.run(["ip", "link", "set", control.host.link, "down"], check=True)
    try:
        wait_for(
            lambda: control.stages() == ["reverted"], 40, "the host puts itself back with no line at all"
        )
    finally:
        subprocess.run(["ip", "link", "set", control.host.link, "up"], check=True)
    told = play.result()
    assert told["failed"]
    assert told["state"] == "reverted"
    assert not (control.host.root / DROP_IN).exists()
    assert tidy(control)


@pytest.mark.parametrize("reload", ["false", "sh -c 'systemctl kill -s KILL ssh.service; sleep 1; false'"])
def test_reload_fails(control: Controller, reload: str) -> None:
    told = control.run(change(reload=[reload]))
    assert told["state"] == "reverted", told
    assert "failed" in told["msg"]
    assert not (control.host.root / DROP_IN).exists()
    assert control.shell("systemctl is-active ssh.service").strip() == "active"


def test_full_disk_while_arming(control: Controller) -> None:
    control.shell(
        "mkdir -p /var/lib/gpu-provision && mount -t tmpfs -o size=8k,mode=700 none /var/lib/gpu-provision"
    )
    try:
        told = control.run(change())
        assert told["state"] == "untouched", told
        assert "No space left on device" in told["msg"]
        assert not (control.host.root / DROP_IN).exists()
        assert tidy(control)
    finally:
        control.shell("umount /var/lib/gpu-provision")


def test_full_disk_while_writing(control: Controller) -> None:
    control.shell("mount -t tmpfs -o size=4k,mode=755 none /etc/ssh/sshd_config.d")
    try:
        control.shell("echo full > /etc/ssh/sshd_config.d/filler")
        told = control.run(change())
        assert told["state"] in ("untouched", "reverted"), told
        assert "No space left on device" in told["msg"]
        assert control.shell("ls -A /etc/ssh/sshd_config.d").split() == ["filler"]
        assert tidy(control)
    finally:
        control.shell("umount /etc/ssh/sshd_config.d")


@pytest.mark.parametrize(
    "late",
    [pytest.param(-1.5, marks=pytest.mark.full), pytest.param(-0.3, marks=pytest.mark.full), 0.0, 1.0],
)
def test_timer_fires_while_the_confirmation_is_under_way(control: Controller, late: float) -> None:
    with control.holding():
        play = control.start(change())
        wait_for(lambda: "armed" in control.stages(), 60, "armed")
        time.sleep(8 + late)
    told = play.result()
    truth = {"done": "done", "reverted": "reverted"}[control.stages()[0]]
    assert told["state"] == truth, told
    assert (control.host.root / DROP_IN).exists() == (truth == "done")
    if late > 0:
        assert truth == "reverted"
    assert tidy(control)


def test_reboot_in_the_armed_window(control: Controller) -> None:
    # Nobody gets in once the change is made, so the session that orders the reboot is there before.
    console = subprocess.Popen(
        [*ssh.fresh_args(control.target), "read go && systemctl reboot"], stdin=subprocess.PIPE, text=True
    )
    booted = control.shell("cat /proc/sys/kernel/random/boot_id")
    with control.holding():
        play = control.start(change(SHUT, seconds=600))
        wait_for(lambda: "armed" in control.stages(), 60, "armed")
        wait_for(lambda: not control.login().holds, 30, "reloaded")
        play.kill()
    console.communicate("now\n", timeout=60)
    wait_for(lambda: control.login().holds, 60, "a key gets in after the boot")
    assert control.shell("cat /proc/sys/kernel/random/boot_id") != booted
    assert control.stages() == ["reverted"]
    status = control.run({"gpu_provision.host.commit_confirm": {"operation": "status"}})
    assert (status["state"], status["last"]["state"], status["last"]["why"]) == ("idle", "reverted", "boot")
    assert tidy(control)


def test_two_runs_at_once(control: Controller, tmp_path: Path) -> None:
    second = Controller(tmp_path / "second", control.host)
    with control.holding():
        first = control.start(change(seconds=60))
        wait_for(lambda: "armed" in control.stages(), 60, "armed")
        told = second.run(change("PasswordAuthentication no\n"))
        assert told["failed"]
        assert told["state"] == "untouched"
        assert "is changing a test and has" in told["msg"]
    assert first.result()["state"] == "done"
    assert (control.host.root / DROP_IN).read_text() == LOCKED


def test_revert_by_hand(control: Controller) -> None:
    with control.holding():
        play = control.start(change(seconds=120))
        wait_for(lambda: "armed" in control.stages(), 60, "armed")
        second = Controller(control.folder / "second", control.host)
        told = second.run({"gpu_provision.host.commit_confirm": {"operation": "revert"}})
        assert told["state"] == "reverted"
    assert play.result()["state"] == "reverted"


def test_what_was_pending_before_us_is_told(control: Controller) -> None:
    """Somebody shut the administrator out on disk and did not reload. We do, so it shows; nobody hides it."""
    keeper = subprocess.Popen([*ssh.fresh_args(control.target), "sh -s"], stdin=subprocess.PIPE, text=True)
    control.shell(f"echo '{SHUT.strip()}' >>/etc/ssh/sshd_config")
    try:
        told = control.run(change(seconds=60))
        assert told["state"] == "reverted"
        assert "with the old files a fresh login does not work either" in told["msg"]
    finally:
        keeper.communicate("sed -i '$d' /etc/ssh/sshd_config; systemctl reload ssh.service\n", timeout=60)
        wait_for(lambda: control.login().holds, 15, "sshd listens again")


def test_on_this_machine_nothing_is_changed(tmp_path: Path, lab_host: LabHost) -> None:
    """Nobody can prove from outside that one still gets in."""
    local = Controller(tmp_path, lab_host)
    play = change(files=[{"path": str(tmp_path / "new.conf"), "text": "x"}])
    told = local.run({**play, "connection": "local", "vars": {"ansible_connection": "local"}})
    assert told["failed"]
    assert told["state"] == "untouched"
    assert "on the machine that we run on" in told["msg"]
    assert not (tmp_path / "new.conf").exists()


def test_a_kind_of_host_key_that_goes_is_replaced_in_known_hosts(lab_host: LabHost, tmp_path: Path) -> None:
    """Known is the host's ECDSA key only, and that is what the hardened host does not show any more."""
    known = tmp_path / "known_hosts"
    public = (lab_host.root / "etc/ssh/ssh_host_ecdsa_key.pub").read_text().split()
    known.write_text(f"{lab_host.address} {public[0]} {public[1]}\n")
    plain = lab_host.target()
    options = (f"UserKnownHostsFile={known}", "GlobalKnownHostsFile=/dev/null", *plain.options[2:])
    control = Controller(tmp_path / "controller", lab_host, replace(plain, options=options))
    task = change("HostKeyAlgorithms -ecdsa-*\n" + LOCKED, seconds=60)
    told = control.run(task)
    assert told["state"] == "reverted", told
    assert "so run this again" in told["msg"]
    assert control.run(task)["state"] == "done"
    control.shell(f"rm /{DROP_IN} && systemctl reload ssh.service")
    wait_for(lambda: control.login().holds, 15, "sshd listens again")
