"""First contact with a lab host that has only a password, in the shapes that providers leave hosts in."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml
from plays import wait_for

from provision.access import fresh
from provision.access.door import door_to
from provision.access.first_contact import _offered, first_contact
from provision.access.own_key import own_key
from provision.errors import Failure, Unreached
from provision.transport import ssh
from provision.transport.explain import ChangedHostKey, UnknownHostKey

if TYPE_CHECKING:
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


def settings(rented: Rented, **changed: str) -> None:
    """Change sshd's drop-in of this host, keyword by keyword."""
    script = " ".join(f"-e '/^{keyword} /d' -e '1i{keyword} {value}'" for keyword, value in changed.items())
    rented.shell(f"sed -i {script} /etc/ssh/sshd_config.d/10-rented.conf && systemctl reload ssh.service")
    wait_for(lambda: accepted(rented, rented.host.target()), 10, "sshd listens again")


def test_a_server_that_asks_by_keyboard_interactive_only(rented: Rented) -> None:
    settings(rented, PasswordAuthentication="no", KbdInteractiveAuthentication="yes")
    assert accepted(rented, rented.contact("bob"))


def test_a_home_on_a_read_only_disk(rented: Rented) -> None:
    rented.shell("mount --bind /home/bob /home/bob && mount -o remount,bind,ro /home/bob")
    try:
        with pytest.raises(Failure, match=r"bob may not write in /home/bob \(a read-only disk"):
            rented.contact("bob")
    finally:
        rented.shell("umount /home/bob")


def test_many_keys_do_not_hide_that_a_password_is_taken(rented: Rented, tmp_path: Path) -> None:
    """The server hangs up before OpenSSH has named the other ways; they are asked of it then."""
    settings(rented, MaxAuthTries="2")
    for number in range(3):
        argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / f"many{number}")]
        subprocess.run(argv, check=True)
    options = (*rented.target().options, *(f"IdentityFile={tmp_path}/many{n}" for n in range(3)))
    target = replace(rented.target("bob"), options=options)
    assert _offered(target) == ("publickey", "password")
    with pytest.raises(Failure, match=r"the key is in .*Too many authentication failures"):
        first_contact(target, PASSWORD, rented.public)
    assert accepted(rented, rented.target("bob"))


def test_a_login_by_password_serves_commands_that_only_read(rented: Rented, tmp_path: Path) -> None:
    with ssh.Session(rented.target("bob"), tmp_path / "c", login_password=PASSWORD) as session:
        assert session.run(["id", "-un"]).out == "bob\n"
        command_lines = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout
        assert "correct horse" not in command_lines
    assert not accepted(rented, rented.target("bob")), "no key was left"
    with (
        ssh.Session(rented.target("bob"), tmp_path / "c", login_password="wrong") as session,
        pytest.raises(Unreached, match="the password was refused for bob"),
    ):
        session.open()
    settings(rented, PasswordAuthentication="no", KbdInteractiveAuthentication="yes")
    with ssh.Session(rented.target("bob"), tmp_path / "d", login_password=PASSWORD) as session:
        assert session.run(["id", "-un"]).out == "bob\n"


def test_a_person_is_asked_and_what_is_typed_is_not_shown(rented: Rented, tmp_path: Path) -> None:
    known = " ".join(f"-o {option}" for option in rented.target().options)
    variables = {"ansible_host": rented.host.address, "ansible_user": "bob", "ansible_ssh_common_args": known,
                 "ansible_ssh_private_key_file": str(rented.key)}  # fmt: skip
    (tmp_path / "hosts.yml").write_text(yaml.safe_dump({"all": {"hosts": {"gpu01": variables}}}))
    argv = ["gpu-provision", "record", "-i", f"{tmp_path}/hosts.yml", "gpu01", "--out", f"{tmp_path}/r.json"]
    main, terminal = pty.openpty()
    argv[0] = str(Path(sys.executable).with_name("gpu-provision"))
    # setsid gives it this terminal as its own, where passwords are asked.
    run = subprocess.Popen(["setsid", "-cw", *argv], stdin=terminal, stdout=terminal, stderr=terminal)
    os.close(terminal)
    shown, typed = b"", False
    try:
        while chunk := os.read(main, 4096):
            shown += chunk
            if b"Password of bob" in shown and not typed:
                os.write(main, f"{PASSWORD}\n".encode())
                typed = True
    except OSError:  # the other end is closed
        pass
    os.close(main)
    assert run.wait(60) == 0, shown
    assert typed
    assert b"correct horse" not in shown
    assert "bob" in (tmp_path / "r.json").read_text()
    assert "correct horse" not in (tmp_path / "r.json").read_text()
    assert not accepted(rented, rented.target("bob")), "recording leaves no key"


@pytest.mark.full
def test_a_login_by_password_outlives_a_reboot(rented: Rented, tmp_path: Path) -> None:
    known = " ".join(f"-o {option}" for option in rented.target().options)
    variables = {"ansible_host": rented.host.address, "ansible_user": "bob", "ansible_ssh_common_args": known,
                 "ansible_ssh_private_key_file": str(rented.key)}  # fmt: skip
    (tmp_path / "hosts.yml").write_text(yaml.safe_dump({"all": {"hosts": {"gpu01": variables}}}))
    rented.shell("echo 'bob ALL=(ALL) ALL' >/etc/sudoers.d/bob")
    booted = rented.shell("cat /proc/sys/kernel/random/boot_id")
    read, write = os.pipe()
    again, also = os.pipe()
    for end in (write, also):
        os.write(end, f"{PASSWORD}\n".encode())
        os.close(end)
    argv = ["gpu-provision", "verify", "-i", f"{tmp_path}/hosts.yml", "gpu01", "--disruptive", "--yes",
            "--password-fd", str(read), "--become-password-fd", str(again)]  # fmt: skip
    argv[0] = str(Path(sys.executable).with_name("gpu-provision"))
    run = subprocess.run(argv, pass_fds=(read, again), capture_output=True, text=True, timeout=300)
    rented.shell("rm /etc/sudoers.d/bob")
    assert rented.shell("cat /proc/sys/kernel/random/boot_id") != booted
    said = " ".join(run.stdout.split())
    assert "proven What held before a reboot holds after it" in said, run.stdout + run.stderr
    assert run.returncode == 1, "no key gets in, which is said, and not that the host is lost"


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
