"""Administrators of a profile: made, proven, and the way to close root's login; nobody loses anything."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from plays import Controller, wait_for

from provision.access import fresh
from provision.access.administrators import prove
from provision.access.door import door_to

if TYPE_CHECKING:
    from pathlib import Path

    from provision.lab import LabHost

# An account of before: a password, a key of its own that one command is bound to, sudo with a password.
OLD = """
useradd -m -s /bin/bash -G sudo old && echo old:secret | chpasswd
mkdir -m 777 /home/old/.ssh && cd /home/old/.ssh
printf 'command="id" ssh-ed25519 %s theirs' "$(head -c 51 /dev/zero | base64 -w0)" >authorized_keys
chown -R old: /home/old/.ssh
"""


@pytest.fixture
def keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Public keys by name, as text; the private keys of ada and old are at hand, carol's is not."""
    folder = tmp_path / ".ssh"
    folder.mkdir(mode=0o700)
    found = {}
    for name in ("ada", "old", "carol"):
        argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(folder / name)]
        subprocess.run(argv, check=True)
        found[name] = (folder / f"{name}.pub").read_text().strip()
    (folder / "carol").unlink()
    monkeypatch.setenv("HOME", str(tmp_path))
    return found


def test_administrators(lab_host: LabHost, keys: dict[str, str], tmp_path: Path) -> None:
    root = Controller(tmp_path / "root", lab_host)
    root.shell(OLD)
    shadow = root.shell("grep ^old: /etc/shadow")
    theirs = root.shell("cat /home/old/.ssh/authorized_keys")
    admins: list[dict[str, Any]] = [
        {"name": "ada", "keys": [f"{tmp_path}/.ssh/ada.pub"]},
        {"name": "old", "keys": [keys["old"]], "sudo": True},
        {"name": "carol", "keys": [keys["carol"]], "sudo": False},
    ]
    want = {"ssh_hardening_admins": admins, "ssh_hardening_confirm_seconds": 60}

    root.shell("echo 'ada ALL = (((' >/etc/sudoers.d/broken")
    status, output = root.role("ssh_hardening", **want)
    assert status != 0
    assert "sudo's files are broken before any change" in output, output[-2000:]
    assert "no" in root.shell("id ada >/dev/null 2>&1 && echo yes || echo no")
    root.shell("rm /etc/sudoers.d/broken; touch /etc/nologin")
    status, output = root.role("ssh_hardening", **want)
    assert status != 0
    assert "ada does not get in as an administrator" in output, output[-2000:]
    assert "00-gpu-provision" not in root.shell("ls /etc/ssh/sshd_config.d"), "passwords are as they were"

    root.shell("rm /etc/nologin")
    status, output = root.role("ssh_hardening", **want)
    assert status == 0, output[-3000:]
    door = door_to(lab_host.target())
    for name in ("ada", "old"):
        proof = prove(door, name, [keys[name]], sudo=True)
        assert proof is not None
        assert proof.holds, proof
    assert prove(door, "carol", [keys["carol"]], sudo=False) is None
    assert root.shell("grep ^old: /etc/shadow") == shadow
    assert root.shell("cat /home/old/.ssh/authorized_keys") == f"{theirs}\n{keys['old']}\n"
    modes = root.shell("stat -c '%a %U' /home/ada/.ssh /home/carol/.ssh/authorized_keys /home/old/.ssh")
    assert modes.split("\n")[:3] == ["700 ada", "600 carol", "755 old"]
    assert root.shell("grep -E '^(ada|carol):' /etc/shadow | cut -d: -f2").split() == ["*", "*"]
    assert "carol" not in root.shell("cat /etc/sudoers.d/zz-gpu-provision; visudo -c")
    status, output = root.role("ssh_hardening", **want)
    assert status == 0
    assert "changed=0" in output

    target = replace(lab_host.target(), user="ada", identity=str(tmp_path / ".ssh" / "ada"))
    ada = Controller(tmp_path / "ada", lab_host, target)
    status, output = ada.role("ssh_hardening", ssh_hardening_root_login="no", **want)
    assert status == 0, output[-3000:]
    assert ada.login().holds
    wait_for(lambda: not fresh.login(door).holds, 10, "root is let in no more")
