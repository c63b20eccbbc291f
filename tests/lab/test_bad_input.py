"""What a command meets that is not as it should be: one message, the contract's exit code, a named state."""

from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from plays import wait_for

from provision.profile.compose import compose
from provision.profile.presets import load
from provision.runs.fleet import Fleet
from provision.runs.host import Traveller
from provision.runs.look import look
from provision.runs.managed import Managed
from provision.runs.planning import make_plan
from provision.transport import ssh

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from provision.lab import LabHost

PASSWORD = "sesame-7f3q9z of alice"
# The only source of this version, so that a plan is not refused for that.
DEBIAN = ("--set", "nvidia_driver_source=debian")
# Somebody else at the packages.
HOLD_LOCK = (
    "systemd-run -q --collect --unit=holder python3 -c 'import fcntl, time; "
    'f = open("/var/lib/dpkg/lock-frontend", "w"); fcntl.lockf(f, fcntl.LOCK_EX); time.sleep({})\''
)
# No driver is installed in these tests: a DKMS build finds no room and says so.
NO_ROOM = "mkdir -p /var/lib/dkms && mount -t tmpfs -o size=64m none /var/lib/dkms"
OLD_PYTHON = """#!/bin/sh
case "$1" in -V) echo Python 3.6.15; exit ;; esac
{ echo 'import sys; sys.version_info = (3, 6, 15, "final", 0)'; cat; } | exec PYTHON "$@"
"""
# A container of a host: its own processes and no service manager, but an sshd.
CONTAINER = (
    "systemd-run -q --collect --unit=container unshare --mount --pid --fork --mount-proc "
    "sh -c 'mount -t tmpfs none /run && mkdir /run/sshd && exec /usr/sbin/sshd -D -p 2200'"
)


@dataclass
class Desk:
    """A person's machine with the command: a state directory and inventories of its own."""

    folder: Path
    host: LabHost
    arguments: set[str] = field(default_factory=set, repr=False)
    """Command lines of all processes that were seen while `watched` was on."""

    def start(self, *words: str, fds: tuple[int, ...] = ()) -> subprocess.Popen[str]:
        kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
        env = {
            **kept,
            "HOME": str(self.folder),
            "XDG_STATE_HOME": str(self.folder / "state"),
        }
        return subprocess.Popen(
            [Path(sys.executable).with_name("gpu-provision"), *words],
            cwd=self.folder,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            pass_fds=fds,
        )

    def run(self, *words: str, password: str | None = None) -> Told:
        """The command to its end. `password` is given as sudo's, by a descriptor."""
        if password is None:
            return Told.by(self.start(*words))
        read, write = os.pipe()
        os.write(write, f"{password}\n".encode())
        os.close(write)
        try:
            return Told.by(self.start(*words, "--become-password-fd", str(read), fds=(read,)))
        finally:
            os.close(read)

    def inventory(self, name: str, known_hosts: Path | None = None, options: str = "", **more: Any) -> str:
        """An inventory with one host of this name: the lab host, by the lab's key."""
        known = known_hosts or self.host.place.known_hosts
        ours = f"-o UserKnownHostsFile={known} -o GlobalKnownHostsFile=/dev/null -o IdentityAgent=none"
        variables = {
            "ansible_host": self.host.address,
            "ansible_user": "root",
            "ansible_ssh_private_key_file": str(self.host.place.key),
            "ansible_ssh_common_args": f"{ours} {options}".strip(),
            **more,
        }
        file = self.folder / f"{name}.yml"
        file.write_text(yaml.safe_dump({"all": {"hosts": {name: variables}}}))
        return str(file)

    def shell(self, command: str) -> str:
        """Run a command on the host as root; its output."""
        argv = [*ssh.fresh_args(self.host.target()), command]
        return subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True
        ).stdout

    @contextmanager
    def changed(self, do: str, undo: str) -> Iterator[None]:
        """The host in another shape for a while."""
        try:
            self.shell(do)
            yield
        finally:
            self.shell(undo)

    def content(self) -> str:
        """What a run could have changed on the host."""
        return self.shell(
            "find /etc /var/lib/gpu-provision /var/lib/dpkg/status -type f -newermt 2000-01-01 "
            "-exec stat -c '%n %Y %s' {} + 2>/dev/null | sort"
        )

    @property
    def newest(self) -> Path:
        return max(self.runs, key=lambda run: run.stat().st_mtime)

    @property
    def runs(self) -> list[Path]:
        return list((self.folder / "state/gpu-provision/runs").glob("*"))

    def states(self) -> list[str]:
        return list(json.loads((self.newest / "state.json").read_text())["hosts"].values())

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Note the command line of every process of this machine, and so of the host's, until it ends."""
        over = threading.Event()

        def watch() -> None:
            while not over.wait(0.01):
                for file in Path("/proc").glob("[0-9]*/cmdline"):
                    try:
                        self.arguments.add(file.read_text(errors="replace"))
                    except OSError:
                        continue

        thread = threading.Thread(target=watch)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


@dataclass
class Told:
    code: int
    text: str

    @classmethod
    def by(cls, process: subprocess.Popen[str]) -> Told:
        out, err = process.communicate(timeout=240)
        return cls(process.returncode, f"{out}\n{err}")

    def says(self, code: int, *words: str) -> None:
        """It left with this code and these words, each once, and nothing of our insides."""
        assert self.code == code, self.text
        for each in words:
            assert self.text.count(each) == 1, f"{each!r} in {self.text}"
        assert "Traceback" not in self.text
        assert "ansible_" not in self.text


@pytest.fixture(scope="module")
def desk(lab_up: Callable[..., LabHost], tmp_path_factory: pytest.TempPathFactory) -> Desk:
    made = Desk(tmp_path_factory.mktemp("desk"), lab_up(gpus="T4:1"))
    made.shell(
        "useradd -m -s /bin/bash -G sudo alice; useradd -m -s /bin/bash mallory; "
        f"printf '%s\\n' {shlex.quote(f'alice:{PASSWORD}')} {shlex.quote(f'mallory:{PASSWORD}')} | chpasswd; "
        "for user in alice mallory; do install -d -m 700 -o $user /home/$user/.ssh; "
        "install -m 600 -o $user /root/.ssh/authorized_keys /home/$user/.ssh/; done"
    )
    return made


@pytest.fixture(autouse=True)
def nothing_changed(request: pytest.FixtureRequest, desk: Desk) -> Iterator[None]:
    """Where the test does not say otherwise, the host is as it was."""
    before = desk.content()
    yield
    assert "partial" in request.fixturenames or desk.content() == before


@pytest.fixture
def partial() -> None:
    """For tests that leave the host in part changed, and say so themselves."""


# ------------------------------------------------------------------------------------------ the way there


def test_a_host_that_nobody_reaches(desk: Desk) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    told = desk.run("bootstrap", f"root@127.0.0.1:{port}", "--yes")
    told.says(3, "nothing listens there (connection refused)")
    assert desk.states() == ["unreached"]


def test_a_login_that_is_refused(desk: Desk) -> None:
    listed = desk.inventory("gpu01", ansible_user="nobody-here")
    desk.run("audit", "-i", listed, "gpu01").says(3, "login refused for nobody-here")


@pytest.mark.parametrize("options", ["", "-o StrictHostKeyChecking=no"])
def test_a_changed_host_key_is_never_taken(desk: Desk, tmp_path: Path, options: str) -> None:
    known, other = tmp_path / "known", tmp_path / "other"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(other)], check=True)
    kind, blob, *_ = other.with_suffix(".pub").read_text().split()
    known.write_text(f"{desk.host.address} {kind} {blob}\n")
    listed = desk.inventory("gpu01", known, options)
    told = desk.run("bootstrap", "-i", listed, "gpu01", "--yes", "--accept-new")
    told.says(3, "the host key has changed", fingerprint(other.with_suffix(".pub")), host_key(desk))
    assert known.read_text() == f"{desk.host.address} {kind} {blob}\n"
    pinned = desk.run("plan", "-i", listed, "gpu01", "--host-key", host_key(desk))
    pinned.says(3, "the host key has changed")


@pytest.mark.parametrize("command", ["audit", "bootstrap"])
def test_an_unknown_host_key_without_a_terminal(desk: Desk, tmp_path: Path, command: str) -> None:
    known = tmp_path / "known"
    listed = desk.inventory("gpu01", known)
    told = desk.run(command, "-i", listed, "gpu01", *["--yes"] * (command == "bootstrap"))
    told.says(2, "the host key is not known yet", f"`--host-key {host_key(desk)}`", "--accept-new")
    assert not known.exists() or known.read_text() == ""


def test_a_pin_that_does_not_fit_and_one_that_does(desk: Desk, tmp_path: Path) -> None:
    known = tmp_path / "known"
    listed = desk.inventory("gpu01", known)
    wrong = "SHA256:" + "A" * 43
    told = desk.run("plan", "-i", listed, "gpu01", "--host-key", wrong)
    told.says(3, "is not the one that you gave", wrong, host_key(desk))
    assert not known.exists() or known.read_text() == ""
    desk.run("plan", "-i", listed, "gpu01", "--host-key", "SHA256:short").says(2, "is no fingerprint")
    assert desk.run("plan", "-i", listed, "gpu01", *DEBIAN, "--host-key", host_key(desk)).code == 0
    assert len(known.read_text().splitlines()) == 1


def host_key(desk: Desk) -> str:
    return fingerprint(desk.host.root / "etc/ssh/ssh_host_ed25519_key.pub")


def fingerprint(file: Path) -> str:
    said = subprocess.run(["ssh-keygen", "-lf", str(file)], capture_output=True, text=True, check=True)
    return said.stdout.split()[1]


# ------------------------------------------------------------------------------------------ rights there


@pytest.mark.parametrize(
    ("user", "password", "says", "do"),
    [
        ("alice", None, "sudo: a password is required", "--become-password-fd"),
        ("alice", "wrong", "sudo: the password was not accepted", "--become-password-fd"),
        ("mallory", PASSWORD, "mallory is not in the sudoers file", "log in as root"),
    ],
)
def test_no_root_rights(desk: Desk, user: str, password: str | None, says: str, do: str) -> None:
    listed = desk.inventory("gpu01", ansible_user=user)
    told = desk.run("bootstrap", "-i", listed, "gpu01", *DEBIAN, "--yes", password=password)
    told.says(3, f"{user} has no root rights there ({says}", do)
    assert desk.states() == ["untouched"]


@pytest.mark.parametrize("password", [None, PASSWORD])
def test_a_host_without_sudo(desk: Desk, password: str | None) -> None:
    listed = desk.inventory("gpu01", ansible_user="alice")
    with desk.changed("mv /usr/bin/sudo /usr/bin/sudo.away", "mv /usr/bin/sudo.away /usr/bin/sudo"):
        desk.run("plan", "-i", listed, "gpu01", password=password).says(
            3, "sudo: not found", "log in as root"
        )


def test_a_vaulted_password_opens_sudo(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "vault").write_text("open\n")
    encrypt = [sys.executable, "-m", "ansible", "vault", "encrypt_string", "--vault-password-file"]
    done = subprocess.run(
        [*encrypt, str(tmp_path / "vault")], input=PASSWORD, capture_output=True, text=True, check=True
    )
    listed = Path(desk.inventory("gpu01", ansible_user="alice"))
    secret = "\n".join(f"          {line.strip()}" for line in done.stdout.splitlines()[1:])
    listed.write_text(f"{listed.read_text()}      ansible_become_password: !vault |\n{secret}\n")
    words = ("plan", "-i", str(listed), "gpu01", *DEBIAN)
    (tmp_path / "wrong").write_text("closed\n")
    for more in ([], ["--vault-password-file", str(tmp_path / "wrong")]):
        desk.run(*words, *more).says(2, "encrypted by ansible-vault", "give its password by")
    opened = desk.run(*words, "--vault-password-file", str(tmp_path / "vault"))
    opened.says(0, "write /etc/nccl.conf")


# ------------------------------------------------------------------------------------------ what is there


def test_no_python(desk: Desk) -> None:
    with desk.changed("mkdir /root/away; mv /usr/bin/python3* /root/away", "mv /root/away/* /usr/bin"):
        told = desk.run("bootstrap", desk.host.name, *DEBIAN, "--yes")
        assert desk.run("audit", desk.host.name).code == 3
    told.says(3, "no usable Python", "install python3 there")
    assert desk.states() == ["untouched"]


def test_a_python_that_ansible_cannot_use(desk: Desk) -> None:
    """It is audited; it is converged only where a newer one lies beside it."""
    real = desk.shell("readlink -f /usr/bin/python3").strip()
    old = desk.host.root / "usr/local/bin/python3"
    old.write_text(OLD_PYTHON.replace("PYTHON", "/opt/hidden"))
    old.chmod(0o755)
    try:
        with desk.changed(f"mv {real} /opt/hidden", f"mv /opt/hidden {real}"):
            told = desk.run("bootstrap", desk.host.name, *DEBIAN, "--yes")
            audit = desk.run("audit", desk.host.name, *DEBIAN, "--format", "json")
        assert desk.run("plan", desk.host.name, *DEBIAN).code == 0
    finally:
        old.unlink()
    told.says(3, "it has Python 3.6.15; Ansible needs 3.8 or newer")
    assert desk.states() == ["untouched"]
    assert audit.code == 1
    [host] = json.loads(audit.text.partition("\n\n")[0])["hosts"]
    assert host["reached"]
    assert host["counts"]["pass"] > 5


def test_an_unknown_distribution(desk: Desk) -> None:
    other = "rm /etc/os-release; printf 'ID=void\\nPRETTY_NAME=\"Void Linux\"\\n' >/etc/os-release"
    with desk.changed(other, "ln -sfn ../usr/lib/os-release /etc/os-release"):
        desk.run("plan", desk.host.name).says(2, "Void Linux is not supported", "debian12")
        told = desk.run("bootstrap", desk.host.name, "--yes")
    told.says(2, "Void Linux is not supported", "debian12")
    assert desk.states() == ["untouched"]


def test_a_container_without_systemd(desk: Desk) -> None:
    listed = desk.inventory("pod", options=f"-o HostKeyAlias={desk.host.address}", ansible_port=2200)
    with desk.changed(CONTAINER, "systemctl stop container"):
        wait_for(lambda: "2200" in desk.shell("ss -Hltn"), 10, "the container's sshd listens")
        told = desk.run("bootstrap", "-i", listed, "pod", *DEBIAN, "--yes")
    told.says(2, "systemd does not run here", "give that machine's address")
    assert desk.states() == ["untouched"]


def test_a_full_disk(desk: Desk) -> None:
    fill = "mount -o remount,size=1m /tmp && ! dd if=/dev/zero of=/tmp/fill bs=64k 2>/dev/null"
    with desk.changed(fill, "rm /tmp/fill; mount -o remount,size=10% /tmp"):
        told = desk.run("bootstrap", desk.host.name, *DEBIAN, "--yes")
    told.says(1, "the disk is full: /tmp has 0 MB free, and any run needs 34 MB")
    assert desk.states() == ["untouched"]


def test_this_machine_keeps_its_way_in(desk: Desk) -> None:
    """What `local` would be planned to change is judged from a lab host's recording; nothing runs."""
    name, preset = load("training")
    managed = Managed(desk.host.target(), compose(name, preset, {}, {}))
    with Fleet([managed], 1) as fleet:
        seen = look(fleet.lines[managed.name])
    here, there = (Traveller("h", "", local=local, look=seen) for local in (True, False))
    make_plan(here)
    make_plan(there)
    assert there.plan is not None
    assert "ssh_hardening" in there.plan.roles
    assert here.plan is not None
    assert here.plan.roles == ()
    assert here.failure is not None
    assert here.failure.exit_code == 1
    assert "run it from another machine" in str(here.failure)


# ------------------------------------------------------------------------------------------ what was asked


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--set", "ssh_hardning_root_login=no"], "did you mean ssh_hardening_root_login?"),
        (["--set", "ssh_hardening_root_login=maybe"], "must be one of: no, prohibit-password"),
        (["--set", "nccl_variables=@/no/such/file"], "/no/such/file: No such file or directory"),
        (["--profile", "reserch"], "did you mean research?"),
        (["--become-password-fd", "87"], "--become-password-fd 87: Bad file descriptor"),
        (["--ask-become-pass"], "there is no terminal to ask for sudo's password on"),
        (["--frobnicate"], "No such option"),
    ],
)
def test_a_call_that_is_wrong(desk: Desk, words: list[str], says: str) -> None:
    runs = set(desk.folder.glob("state/gpu-provision/runs/*"))
    desk.run("bootstrap", desk.host.name, "--yes", *words).says(2, says)
    assert set(desk.folder.glob("state/gpu-provision/runs/*")) == runs, "it came to no run"


def test_nobody_there_to_agree(desk: Desk) -> None:
    desk.run("bootstrap", desk.host.name, *DEBIAN).says(2, "no terminal", "give --yes")


# ------------------------------------------------------------------------------------------ half-way


@pytest.mark.parametrize("command", ["audit", "bootstrap"])
def test_ctrl_c_before_anything_began(desk: Desk, command: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        run = desk.start(command, f"root@127.0.0.1:{silent.getsockname()[1]}")
        silent.settimeout(30)
        connection, _ = silent.accept()  # it waits for a greeting now
        with connection:
            run.send_signal(signal.SIGINT)
            told = Told.by(run)
    told.says(130, "interrupted")
    if command == "audit":
        told.says(130, "no host was changed")
    else:
        assert desk.states() == ["untouched"]


@pytest.mark.usefixtures("partial")
def test_a_disk_without_room_and_a_password_that_leaks_nowhere(desk: Desk) -> None:
    listed = desk.inventory("gpu01", ansible_user="alice")
    with desk.changed(NO_ROOM, "umount /var/lib/dkms"), desk.watched():
        told = desk.run("bootstrap", "-i", listed, "gpu01", *DEBIAN, "--yes", password=PASSWORD)
    assert told.code == 1, told.text
    assert "/var/lib/dkms has 67 MB free and 400 MB are needed" in told.text
    assert desk.states() == ["partial"]
    assert (
        f"gpu-provision bootstrap gpu01 --resume -i {listed} --set nvidia_driver_source=debian" in told.text
    )
    assert desk.shell("dpkg-query -W 'nvidia*' 2>/dev/null | wc -l").strip() == "0"
    assert any("gpu-provision-password:" in line for line in desk.arguments), "sudo was seen at work"
    assert not [line for line in desk.arguments if PASSWORD in line]
    assert PASSWORD not in told.text
    files = [file for file in desk.newest.rglob("*") if file.is_file()]
    assert files
    assert not [file for file in files if PASSWORD in file.read_text(errors="replace")]
    assert not [file for file in files if file.stat().st_mode & 0o077]


@pytest.mark.usefixtures("partial")
def test_ctrl_c_while_the_role_waits_for_apts_lock_and_going_on(desk: Desk) -> None:
    with desk.changed(
        f"{NO_ROOM}; {HOLD_LOCK.format(600)}", "umount /var/lib/dkms; systemctl stop holder || true"
    ):
        holder = desk.shell("systemctl show holder -P MainPID").strip()
        earlier = desk.runs
        run = desk.start("bootstrap", desk.host.name, *DEBIAN, "--yes")
        wait_for(lambda: begun(desk, "apt_transaction", earlier), 60, "the transaction waits for the lock")
        second = desk.run("bootstrap", desk.host.name, *DEBIAN, "--yes")
        second.says(1, "another run of gpu-provision works on this host", f"process {run.pid}")
        assert desk.states() == ["untouched"]
        run.send_signal(signal.SIGINT)
        time.sleep(1)
        run.send_signal(signal.SIGINT)  # this one no longer waits for the task
        told = Told.by(run)
        told.says(130, "stopping: the tasks that run now have", "stopped while this ran: nvidia_driver")
        assert (
            f"wait for process {holder} (python3), which holds /var/lib/dpkg/lock-frontend now" in told.text
        )
        [go_on] = [line.split("go on", 1)[1].split() for line in told.text.splitlines() if "  go on " in line]
        assert go_on == ["gpu-provision", "bootstrap", desk.host.name, "--resume", *DEBIAN]
        assert not desk.shell("ps -eo args | grep '[a]pt_transaction' || true"), "nothing of it is left there"
        desk.shell(f"systemctl stop holder; {HOLD_LOCK.format(6)}")
        again = desk.run(*go_on[1:], "--yes")
    assert again.code == 1
    assert "400 MB are needed" in again.text, "it waited for the lock, and came as far as the disk"


def begun(desk: Desk, action: str, earlier: list[Path]) -> bool:
    """Whether a run later than the `earlier` ones is in a task of ours at this moment."""
    files = [run / "events.jsonl" for run in desk.runs if run not in earlier]
    last = "".join("".join(file.read_text().splitlines()[-1:]) for file in files if file.exists())
    return (
        last.endswith("}")
        and json.loads(last).items()
        >= {
            "kind": "task",
            "action": f"gpu_provision.host.{action}",
        }.items()
    )
