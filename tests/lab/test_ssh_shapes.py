"""ssh_hardening on hosts of many shapes. Each is either key-only afterwards or as it was, byte for byte;
whichever it is, a key gets in on a fresh connection by plain OpenSSH."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from plays import Controller, wait_for
from ssh_shapes import SHAPES, Shape

from provision.access import fresh
from provision.access.door import door_to
from provision.transport import ssh

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from _pytest.mark import ParameterSet

    from provision.lab import LabHost

RESET = """
umount /etc/ssh/sshd_config.d 2>/dev/null
rm -rf /etc/ssh /run/systemd/system/ssh.service.d /var/lib/gpu-provision /root/aside
tar -C / -xf /root/ssh.tar
passwd -qu root; passwd -qu bob
mkdir -p /home/bob/.ssh && cp /root/.ssh/authorized_keys /home/bob/.ssh/ && chown -R bob: /home/bob/.ssh
chmod 700 /home/bob/.ssh
systemctl daemon-reload
systemctl disable -q --now ssh.socket
# Stopped first: while it runs, systemd 257 may lose sight of it as `enable` gives it its second name again,
# and what is started beside the old sshd finds the port taken. This session stays (KillMode=process).
systemctl stop ssh.service; systemctl enable -q ssh.service; systemctl restart ssh.service
"""

FIRST = f"""
useradd -m -s /bin/bash -G sudo bob
printf 'root:secret\\nbob:secret\\n' | chpasswd
echo 'bob ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/bob
tar -C / -cf /root/ssh.tar etc/ssh etc/default/ssh root/.ssh
{RESET}
"""


@pytest.fixture(scope="module")
def hosts(lab_up: Callable[..., LabHost]) -> Callable[[str], LabHost]:
    """One host a release with root and bob, passwords set, keys installed; its first state is kept."""
    made: dict[str, LabHost] = {}

    def host(release: str) -> LabHost:
        if release not in made:
            made[release] = lab_up(release=release)
            subprocess.run(
                [*ssh.fresh_args(made[release].target()), "sh -s"], input=FIRST, text=True, check=True
            )
        return made[release]

    return host


@pytest.fixture
def reset(release: str, hosts: Callable[[str], LabHost]) -> Iterator[LabHost]:
    host = hosts(release)
    wait_for(lambda: fresh.login(door_to(host.target())).holds, 15, "a key gets in before the shape")
    yield host
    ways = (host.target(), replace(host.target(), port=2222), replace(host.target(), user="bob"))
    for way in ways:
        if subprocess.run([*ssh.fresh_args(way), "sudo sh -s"], input=RESET, text=True).returncode != 255:
            return


def content(control: Controller) -> str:
    """Everything of /etc/ssh, times left out."""
    return control.shell(
        "cd /etc/ssh && sudo find . -exec stat -c '%n %a %U %F' {} + | sort; "
        "sudo find . -type f -exec sha256sum {} + | sort"
    )


def cases() -> list[ParameterSet]:
    """Every shape on each release; CI takes a sample of them on one."""
    return [
        pytest.param(
            release,
            shape,
            id=f"{release}-{shape.name}",
            marks=[] if shape.sample and release == "bookworm" else [pytest.mark.full],
        )
        for release in ("bookworm", "trixie")
        for shape in SHAPES
    ]


@pytest.mark.parametrize(("release", "shape"), cases())
def test_shape(release: str, shape: Shape, reset: LabHost, tmp_path: Path, row: dict[str, str]) -> None:
    row |= {"table": "shapes", "shape": shape.name, "release": release}
    control = shaped(shape, reset, tmp_path)
    before = content(control)
    status, output = control.role("ssh_hardening", ssh_hardening_confirm_seconds=60, **shape.variables)
    gets_in(control, row)
    row["state"] = named_state(control, output)
    if shape.says is not None:
        assert status != 0
        assert row["state"] in ("untouched", "reverted")
        assert shape.says in output, output[-3000:]
        assert content(control) == before
        row["as before"] = "byte for byte"
        return
    assert status == 0, output[-3000:]
    assert row["state"] == "done"
    row["password refused"] = passwords_refused(control, shape)
    if shape.afterwards:
        control.shell(f"sudo sh -c '{shape.afterwards}'")
        wait_for(lambda: control.login().holds, 15, "sshd listens again")
        assert passwords_refused(control, shape) == row["password refused"], "and it does not come back"
    assert fresh.login(door_to(replace(control.target, user="root"))).holds is shape.root_gets_in
    after = content(control)
    status, output = control.role("ssh_hardening", **shape.variables)
    assert status == 0
    assert "changed=0" in output
    assert content(control) == after
    row["second run"] = "changes nothing"


@pytest.mark.full
@pytest.mark.parametrize(
    ("release", "shape"), [c for c in cases() if c.values[1].says is None and c.values[0] == "trixie"]
)
def test_shape_and_the_controller_is_killed(
    release: str, shape: Shape, reset: LabHost, tmp_path: Path, row: dict[str, str]
) -> None:
    """Once sshd runs with the new files, and before anybody has confirmed them."""
    row |= {"table": "faults", "change": f"ssh_hardening, {shape.name}", "release": release}
    row |= {"fault": "control killed -9", "at": "prove"}
    control = shaped(shape, reset, tmp_path)
    before = content(control)
    with control.holding():
        variables = {"ssh_hardening_confirm_seconds": 15, **shape.variables}
        play = control.start({"role": "ssh_hardening"}, extra=variables)
        wait_for(lambda: control.begun(), 60, "sshd was told")
        play.kill()
    wait_for(lambda: control.stages() == ["reverted"], 60, "reverted")
    wait_for(lambda: control.login().holds, 20, "a key gets in")
    gets_in(control, row)
    row["state"] = control.stages()[0]
    assert content(control) == before
    row["as before"] = "byte for byte"


def shaped(shape: Shape, host: LabHost, folder: Path) -> Controller:
    """A controller that goes to the host the shape's own way, once the host has that shape."""
    target = replace(host.target(), user=shape.user, port=shape.port)
    setup = shape.setup + ("\nsystemctl reload-or-restart ssh.service 2>/dev/null" if _reloads(shape) else "")
    subprocess.run([*ssh.fresh_args(host.target()), "sh -s"], input=setup, text=True, capture_output=True)
    control = Controller(folder, host, target)
    wait_for(lambda: control.login().holds, 15, "the shape lets its administrator in")
    return control


def gets_in(control: Controller, row: dict[str, str]) -> None:
    row["gets in"] = "no"
    assert control.login().holds, "the administrator gets in after everything"
    row["gets in"] = "yes"


def named_state(control: Controller, output: str) -> str:
    """The state that the host is in; where the role came as far as a change, its report says the same."""
    stages = control.stages()
    if not stages:
        return "untouched"
    assert len(stages) == 1
    if stages != ["done"]:
        assert f'"state": "{stages[0]}"' in output, output[-3000:]
    return stages[0]


def passwords_refused(control: Controller, shape: Shape) -> str:
    """Asked of sshd for every account and from every address that a Match block names; tried from outside."""
    for user in ("root", "bob"):
        proof = fresh.password_refused(door_to(replace(control.target, user=user)))
        assert proof.holds, (user, proof)
    addresses = (*shape.addresses, "203.0.113.9")
    said = control.shell(
        f"for addr in {' '.join(addresses)}; do for user in $(getent passwd | cut -d: -f1) stranger; do "
        "sudo sshd -T -C user=$user,host=$addr,addr=$addr,laddr=10.0.0.1,lport=22 | "
        "grep -cxE '(password|kbdinteractive)authentication no'; done; done"
    ).split()
    assert set(said) == {"2"}
    return f"{len(said) // len(addresses)} accounts, {len(addresses)} addresses"


def _reloads(shape: Shape) -> bool:
    return shape.loaded and shape.name not in ("behind-ssh.socket", "cannot-reload", "another-main-file")
