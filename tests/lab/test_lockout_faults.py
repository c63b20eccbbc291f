"""Everything that can go wrong, at each step of a change of sshd and of a change of firewall rules.

After each the administrator gets in on a fresh connection by plain OpenSSH, and the state that is told is the
one that the host is in: untouched and reverted leave everything as it was, done is the change.
"""

from __future__ import annotations

import subprocess
import time
from typing import TYPE_CHECKING

import pytest
from faults import (
    FIREWALL,
    FOLDER,
    NFT_SET_UP,
    SET_UP,
    SSH,
    WRAPPER,
    Change,
    at,
    caller,
    cut,
    reached,
    set_point,
    told_by,
    told_on_host,
)
from faults import release as release_points
from plays import STATE, Controller, wait_for

from provision.transport import ssh

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from _pytest.mark import ParameterSet

    from provision.lab import LabHost

# Long enough to come to the last step, short enough to wait for.
SECONDS = 15
RESET = f"""
umount /etc/ssh/sshd_config.d /etc/nftables.d /var/lib/gpu-provision 2>/dev/null
rm -rf /{STATE} /etc/ssh /etc/nftables.d
tar -C / -xf /root/ssh.tar
systemctl daemon-reload; systemctl reload ssh.service
{NFT_SET_UP}
"""


@pytest.fixture(scope="module")
def hosts(lab_up: Callable[..., LabHost]) -> Callable[[str], LabHost]:
    """One host a release, with a wrapper before each tool that a change calls."""
    made: dict[str, LabHost] = {}

    def host(release: str) -> LabHost:
        if release not in made:
            made[release] = lab_up(release=release)
            target = made[release].target()
            for command, text in ((SET_UP, WRAPPER), ("tar -C / -cf /root/ssh.tar etc/ssh; sh -s", RESET)):
                subprocess.run([*ssh.fresh_args(target), command], input=text, text=True, check=True)
        return made[release]

    return host


@pytest.fixture
def control(release: str, hosts: Callable[[str], LabHost], tmp_path: Path) -> Iterator[Controller]:
    controller = Controller(tmp_path, hosts(release))
    yield controller
    release_all(controller)
    assert controller.login().holds, "the administrator gets in after everything"
    target = controller.host.target()
    subprocess.run([*ssh.fresh_args(target), "sh -s"], input=RESET, text=True, capture_output=True)
    wait_for(lambda: controller.login().holds, 15, "sshd listens again")


def release_all(control: Controller) -> None:
    release_points(control)
    subprocess.run(["ip", "link", "set", control.host.link, "up"], check=True)


class Case:
    """One situation: what was there before, and the line of the table that it becomes."""

    def __init__(
        self, control: Controller, change: Change, row: dict[str, str], release: str, fault: str
    ) -> None:
        self.control, self.change, self.row = control, change, row
        row |= {"table": "faults", "change": change.name, "release": release, "fault": fault, "gets in": "no"}
        self.before = control.shell(change.signature)

    def ends(self, state: str, told: str) -> None:
        """The host ends in `state`, lets the administrator in, and `told` names just that."""
        control = self.control
        wait_for(lambda: control.stages() == ([] if state == "untouched" else [state]), 60, state)
        wait_for(lambda: control.login().holds, 30, "a key gets in")
        self.row |= {"state": state, "gets in": "yes", "told": told}
        assert told_on_host(control) == state
        assert told == state
        after = control.shell(self.change.signature)
        assert (after != self.before) == (state == "done")
        self.row["as before"] = "the change" if state == "done" else "byte for byte"
        assert ".gpu-provision-" not in control.shell("ls -A /etc/ssh /etc/ssh/*.d /etc/nftables.d")


STEPS = ("plan", "arm", "write", "check", "load", "prove", "confirm")
OUTCOMES = {"plan": "untouched", "confirm": "done"}


def seconds(step: str) -> int:
    """Nobody waits for the timer where the last step is reached."""
    return 60 if step == "confirm" else SECONDS


def cases(sample: set[tuple[str, ...]], *parameters: tuple[str, ...]) -> list[ParameterSet]:
    """Every change on each release with each of the parameters; CI takes the sample, on one release each."""
    found = []
    for change in (SSH, FIREWALL):
        for release in ("bookworm", "trixie"):
            for more in parameters:
                name = "-".join((change.name.split()[0], *more))
                in_ci = (change.name.split()[0], *more) in sample and release == "bookworm"
                marks = [] if in_ci else [pytest.mark.full]
                found.append(pytest.param(change, release, *more, id=f"{release}-{name}", marks=marks))
    return found


SAMPLE_KILLED = {("ssh_hardening", "load"), ("firewall", "prove")}


@pytest.mark.parametrize(("change", "release", "step"), cases(SAMPLE_KILLED, *((s,) for s in STEPS)))
def test_control_is_killed(
    control: Controller, change: Change, release: str, step: str, row: dict[str, str]
) -> None:
    case = Case(control, change, row, release, "control killed -9")
    row["at"] = step
    with at(control, change, step):
        play = change.start(control, seconds=seconds(step), shut=step != "confirm")
        reached(control, step)
        play.kill()
    wait_for(lambda: control.stages() in ([], ["done"], ["reverted"]), 60, "it ends by itself")
    wait_for(lambda: control.login().holds, 30, "a key gets in, once sshd has read its old files again")
    case.ends(OUTCOMES.get(step, "reverted"), told_on_host(control))


SAMPLE_CUT = {("firewall", "confirm")}


@pytest.mark.parametrize(("change", "release", "step"), cases(SAMPLE_CUT, *((s,) for s in STEPS)))
def test_network_is_cut(
    control: Controller, change: Change, release: str, step: str, row: dict[str, str]
) -> None:
    case = Case(control, change, row, release, "network cut")
    row["at"] = step
    state = OUTCOMES.get(step, "reverted")
    with at(control, change, step) as let_go:
        play = change.start(control, seconds=seconds(step), shut=step != "confirm")
        reached(control, step)
        with cut(control):
            let_go()
            if step != "plan":
                wait_for(lambda: control.stages() == [state], 60, "the host ends it with no line at all")
            else:
                play.process.wait(60)
    case.ends(state, told_by(play))


SAMPLE_HOST = {("firewall", "write")}
ON_HOST = ("arm", "write", "check", "load", "confirm")


@pytest.mark.parametrize(("change", "release", "step"), cases(SAMPLE_HOST, *((s,) for s in ON_HOST)))
def test_the_hosts_side_is_killed(
    control: Controller, change: Change, release: str, step: str, row: dict[str, str]
) -> None:
    """As the kernel does where memory runs out."""
    case = Case(control, change, row, release, "host's side killed -9")
    row["at"] = step
    with at(control, change, step):
        play = change.start(control, seconds=seconds(step), shut=step != "confirm")
        reached(control, step)
        control.shell(f"kill -9 {caller(control)}")
    state = {"arm": "untouched", "confirm": "done"}.get(step, "reverted")
    case.ends(state, told_by(play))


@pytest.mark.parametrize(("change", "release"), cases(set(), ()))
def test_it_cannot_be_made_effective(
    control: Controller, change: Change, release: str, row: dict[str, str]
) -> None:
    case = Case(control, change, row, release, "reload fails")
    row["at"] = "load"
    set_point(control, "fail", change.points["load"])
    case.ends("reverted", told_by(change.start(control, seconds=60)))


@pytest.mark.parametrize(("change", "release", "step"), cases(set(), ("arm",), ("write",)))
def test_disk_is_full(
    control: Controller, change: Change, release: str, step: str, row: dict[str, str]
) -> None:
    folder = "/var/lib/gpu-provision" if step == "arm" else change.folder
    control.shell(
        f"mkdir -p {folder}; mkdir /root/aside; cp -a {folder}/. /root/aside; "
        f"mount -t tmpfs -o size={8 if step == 'arm' else 4}k,mode=755 none {folder}; "
        f"cp -a /root/aside/. {folder} || true; rm -r /root/aside; "
        + ("" if step == "arm" else f"echo full >{folder}/filler")
    )
    case = Case(control, change, row, release, "disk full")
    row["at"] = step
    try:
        told = told_by(change.start(control, seconds=60))
        # Some of the state directory may be written: nothing of it counts before it is whole.
        case.ends("untouched" if step == "arm" else "reverted", told)
    finally:
        control.shell(f"umount {folder}")


@pytest.mark.parametrize(("change", "release", "late"), cases(set(), ("0",), ("1",)))
def test_timer_fires_while_the_confirmation_is_under_way(
    control: Controller, change: Change, release: str, late: str, row: dict[str, str]
) -> None:
    case = Case(control, change, row, release, f"confirmation {late} s after the timer")
    row["at"] = "prove"
    with control.holding():
        play = change.start(control, seconds=8)
        wait_for(lambda: "armed" in control.stages(), 60, "armed")
        time.sleep(8 + float(late))
    told = told_by(play)
    assert told in (("reverted",) if float(late) > 0 else ("done", "reverted"))
    case.ends(told, told)


@pytest.mark.parametrize(("change", "release"), cases({("firewall",)}, ()))
def test_reboot_in_the_armed_window(
    control: Controller, change: Change, release: str, row: dict[str, str]
) -> None:
    case = Case(control, change, row, release, "reboot")
    row["at"] = "prove"
    # Nobody gets in once the rules are loaded, and sessions older than them are cut: the host has its order.
    go = control.host.root / FOLDER / "go"
    order = f"until [ -e /{FOLDER}/go ]; do sleep 0.2; done; rm /{FOLDER}/go; systemctl reboot"
    control.shell(f"systemd-run --quiet --collect sh -c '{order}'")
    booted = control.shell("cat /proc/sys/kernel/random/boot_id")
    with control.holding():
        play = change.start(control, seconds=600, shut=True)
        wait_for(control.begun, 60, "made effective")
        play.kill()
    go.touch()
    wait_for(lambda: not go.exists(), 10, "the reboot begins")
    wait_for(lambda: control.login().holds, 60, "a key gets in after the boot")
    assert control.shell("cat /proc/sys/kernel/random/boot_id") != booted
    case.ends("reverted", told_on_host(control))
    assert "(boot)" in control.shell(f"sh /{STATE}/commit-confirm.sh status")


@pytest.mark.parametrize(("change", "release"), cases(set(), ()))
def test_two_runs_at_once(
    control: Controller, change: Change, release: str, tmp_path: Path, row: dict[str, str]
) -> None:
    """The second is refused by the name of the first, which goes on."""
    case = Case(control, change, row, release, "a second run")
    row["at"] = "prove"
    second = Controller(tmp_path / "second", control.host)
    with control.holding():
        play = change.start(control, seconds=120)
        wait_for(control.begun, 60, "made effective")
        other = FIREWALL if change is SSH else SSH
        refused = other.start(second, seconds=60)
        assert told_by(refused) == "untouched"
    case.ends("done", told_by(play))


@pytest.mark.parametrize(("change", "release"), cases(set(), ()))
def test_the_timer_counts_no_wall_clock(
    control: Controller, change: Change, release: str, row: dict[str, str]
) -> None:
    """A lab host shares its machine's clock, which nobody may set: what systemd was told is looked at."""
    case = Case(control, change, row, release, "clock set (by the timer's properties)")
    row["at"] = "prove"
    with control.holding():
        play = change.start(control, seconds=60)
        wait_for(control.begun, 60, "made effective")
        said = control.shell(
            "systemctl show -p TimersCalendar -p TimersMonotonic -p NextElapseUSecRealtime "
            "$(systemctl list-units --plain --no-legend 'gpu-provision-revert-*.timer' | cut -d' ' -f1)"
        )
    assert "TimersMonotonic={ OnActiveUSec=1min ; next_elapse=" in said
    assert "TimersCalendar={" not in said
    assert "NextElapseUSecRealtime=\n" in said
    case.ends("done", told_by(play))
