"""First contact with a lab host that has only a password, in the shapes that providers leave hosts in."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from plays import wait_for

from provision.access import fresh
from provision.access.door import door_to
from provision.access.first_contact import first_contact
from provision.access.own_key import own_key
from provision.errors import Failure, Unreached
from provision.transport import ssh
from provision.transport.explain import ChangedHostKey, UnknownHostKey

if TYPE_CHECKING:
    from pathlib import Path

    from provision.lab import LabHost
    from provision.transport.target import Target

PASSWORD = "correct horse 'battery\" $taple"


class Rented:
    """A host as a provider hands it over. `admin` is how the lab itself gets in, by a key of its own."""

    def __init__(self, host: LabHost, folder: Path) -> None:
        self.host, self.folder = host, folder
        self.key = folder / "id_ed25519"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.key)], check=True)
        self.public = self.key.with_suffix(".pub").read_text().strip()

    def target(self, user: str = "root") -> Target:
        return replace(self.host.target(), user=user, identity=str(self.key))

    def shell(self, command: str) -> str:
        argv = [*ssh.fresh_args(self.host.target()), command]
        return subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True
        ).stdout

    def contact(self, user: str = "root", password: str = PASSWORD) -> Target:
        return first_contact(self.target(user), password, own_key(self.target(user)))


@pytest.fixture
def rented(lab_host: LabHost, tmp_path: Path) -> Rented:
    """Passwords are open, the lab's own key has its place outside the homes, and bob has sudo."""
    made = Rented(lab_host, tmp_path)
    config = "PermitRootLogin yes\\nPasswordAuthentication yes\\nAuthorizedKeysFile .ssh/authorized_keys"
    made.shell(
        "mkdir -p /etc/ssh/lab && cp -n /root/.ssh/authorized_keys /etc/ssh/lab/root 2>/dev/null; "
        "userdel -rf bob 2>/dev/null; useradd -m -s /bin/bash bob; "
        f"printf '{config} /etc/ssh/lab/%%u\\n' >/etc/ssh/sshd_config.d/10-rented.conf; "
        "rm -rf /root/.ssh /etc/ssh/keys; chmod 700 /root; "
        f"chpasswd <<'END' && systemctl reload ssh.service\nroot:{PASSWORD}\nbob:{PASSWORD}\nEND"
    )
    wait_for(lambda: fresh.login(door_to(lab_host.target())).holds, 10, "sshd listens again")
    return made


def accepted(rented: Rented, target: Target) -> bool:
    return fresh.login(door_to(target)).holds


@pytest.mark.parametrize("user", ["root", "bob"])
def test_the_key_is_installed_and_gets_in(rented: Rented, user: str) -> None:
    assert not accepted(rented, rented.target(user))
    target = rented.contact(user)
    assert accepted(rented, target)
    home = "/root" if user == "root" else "/home/bob"
    assert rented.shell(f"stat -c '%a %U' {home}/.ssh {home}/.ssh/authorized_keys").split() == [
        "700", user, "600", user,
    ]  # fmt: skip
    assert first_contact(target, "not asked any more", rented.public) == target


def test_a_file_without_a_last_line_end_keeps_its_keys(rented: Rented) -> None:
    old = rented.shell("cat /etc/ssh/lab/root").strip()
    rented.shell(f"mkdir -m 700 /root/.ssh && printf '%s' '{old}' >/root/.ssh/authorized_keys")
    assert accepted(rented, rented.contact())
    assert rented.shell("cat /root/.ssh/authorized_keys").splitlines() == [old, rented.public]


def test_modes_that_sshd_refuses_are_tightened(rented: Rented) -> None:
    rented.shell(
        f"mkdir /home/bob/.ssh && echo '{rented.public}' >/home/bob/.ssh/authorized_keys && "
        "chown -R bob: /home/bob/.ssh && chmod 777 /home/bob /home/bob/.ssh && chmod 666 /home/bob/.ssh/*"
    )
    assert not accepted(rented, rented.target("bob")), "StrictModes ignores the key that is there"
    assert accepted(rented, rented.contact("bob"))
    assert rented.shell("cat /home/bob/.ssh/authorized_keys") == f"{rented.public}\n", "not a second time"


def test_keys_that_sshd_looks_for_elsewhere(rented: Rented) -> None:
    rented.shell(
        "sed -i 's|^AuthorizedKeysFile.*|AuthorizedKeysFile /etc/ssh/keys/%u /etc/ssh/lab/%u|' "
        "/etc/ssh/sshd_config.d/10-rented.conf && systemctl reload ssh.service"
    )
    wait_for(lambda: accepted(rented, rented.host.target()), 10, "sshd listens again")
    assert accepted(rented, rented.contact())
    assert rented.shell("cat /etc/ssh/keys/root") == f"{rented.public}\n"
    with pytest.raises(Failure, match=r"/etc/ssh/keys/bob, which bob may not write"):
        rented.contact("bob")


def test_a_missing_home(rented: Rented) -> None:
    rented.shell("rm -rf /home/bob")
    with pytest.raises(Failure, match=r"the home /home/bob is not there"):
        rented.contact("bob")


def test_a_wrong_password(rented: Rented) -> None:
    with pytest.raises(Unreached, match="the password was refused for bob"):
        rented.contact("bob", "wrong")


def test_a_password_that_has_to_be_changed_first(rented: Rented) -> None:
    rented.shell("chage -d 0 bob")
    with pytest.raises(Failure, match="wants its password changed"):
        rented.contact("bob")


def test_a_host_that_takes_no_password(rented: Rented) -> None:
    rented.shell(
        "sed -i 's/^PasswordAuthentication yes/PasswordAuthentication no/' "
        "/etc/ssh/sshd_config.d/10-rented.conf && systemctl reload ssh.service"
    )
    wait_for(lambda: accepted(rented, rented.host.target()), 10, "sshd listens again")
    with pytest.raises(Unreached, match=r"takes no password \(publickey only\)"):
        rented.contact("bob")


def test_a_host_key_that_changed_gets_no_password(rented: Rented) -> None:
    known = rented.folder / "known"
    other = rented.folder / "other"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(other)], check=True)
    kind, blob, *_ = other.with_suffix(".pub").read_text().split()
    known.write_text(f"{rented.host.address} {kind} {blob}\n")
    target = replace(
        rented.target("bob"), options=(f"UserKnownHostsFile={known}", "GlobalKnownHostsFile=/dev/null")
    )
    with pytest.raises(ChangedHostKey):
        first_contact(target, PASSWORD, rented.public)
    known.write_text("")
    with pytest.raises(UnknownHostKey):
        first_contact(target, PASSWORD, rented.public)
    assert not accepted(rented, rented.target("bob"))
    assert first_contact(replace(target, accept_new=True), PASSWORD, rented.public)
    assert "ssh-ed25519" in known.read_text()


def test_a_full_disk_leaves_the_old_keys(rented: Rented) -> None:
    old = rented.shell("cat /etc/ssh/lab/root").strip()
    rented.shell(
        "mkdir -m 700 /home/bob/.ssh && "
        "mount -t tmpfs -o size=4k,uid=$(id -u bob),mode=700 none /home/bob/.ssh && "
        f"echo '{old}' >/home/bob/.ssh/authorized_keys && chown bob: /home/bob/.ssh/authorized_keys"
    )
    try:
        with pytest.raises(Failure, match="cannot be written"):
            rented.contact("bob")
        assert rented.shell("ls -A /home/bob/.ssh; cat /home/bob/.ssh/authorized_keys").splitlines() == [
            "authorized_keys", old,
        ]  # fmt: skip
    finally:
        rented.shell("umount /home/bob/.ssh")
