"""Sessions with a lab host: host keys, ways through another host, lost connections."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from plays import wait_for

from provision import lab
from provision.errors import Unreached
from provision.transport import control, hostkeys, ssh
from provision.transport.explain import ChangedHostKey, UnknownHostKey

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provision.lab import LabHost
    from provision.transport.target import Target

pytestmark = pytest.mark.skipif(lab.can_run() is not None, reason=str(lab.can_run()))


@pytest.fixture(scope="module")
def host() -> Iterator[LabHost]:
    made = lab.up("session")
    try:
        yield made
    finally:
        lab.down(made.name)


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="gp-") as made:
        yield Path(made)


@pytest.fixture
def stranger(host: LabHost, folder: Path) -> Target:
    """The host, seen by somebody who does not know its key."""
    target = host.target()
    own = [o for o in target.options if not o.startswith(("UserKnownHostsFile", "StrictHostKeyChecking"))]
    return replace(target, options=(f"UserKnownHostsFile={folder}/known_hosts", *own))


def works(target: Target, folder: Path) -> bool:
    with ssh.Session(target, folder / "c") as session:
        return session.run(["echo", "a b"]).stdout == b"a b\n"


def known(folder: Path) -> list[str]:
    path = folder / "known_hosts"
    return path.read_text().splitlines() if path.exists() else []


def test_an_unknown_key_is_shown_and_not_taken(stranger: Target, folder: Path) -> None:
    with pytest.raises(UnknownHostKey) as caught:
        works(stranger, folder)
    assert caught.value.key is not None
    assert caught.value.key.fingerprint in str(caught.value)
    assert known(folder) == []


def test_a_new_key_is_taken_on_request_and_strict_from_then_on(stranger: Target, folder: Path) -> None:
    assert works(replace(stranger, accept_new=True), folder)
    assert len(known(folder)) == 1
    assert works(stranger, folder)


@pytest.mark.parametrize("algorithms", ["", "rsa-sha2-512,rsa-sha2-256", "ecdsa-sha2-nistp256"])
def test_a_pinned_key_of_any_kind_is_looked_for_and_kept(
    stranger: Target, folder: Path, algorithms: str
) -> None:
    key = hostkeys.offered(stranger, algorithms)
    assert key is not None
    assert works(replace(stranger, host_key=key.fingerprint), folder)
    assert known(folder) == [key.line]


def test_another_key_than_the_pinned_one_is_refused_and_not_written(stranger: Target, folder: Path) -> None:
    with pytest.raises(Unreached, match="is not the one that you gave"):
        works(replace(stranger, host_key="SHA256:" + "A" * 43), folder)
    assert known(folder) == []


def test_a_changed_key_is_never_taken(stranger: Target, folder: Path) -> None:
    key = hostkeys.offered(stranger)
    assert key is not None
    name, kind, blob = key.line.split()
    other = blob[:-6] + ("AAAAAA" if blob[-6:] != "AAAAAA" else "BBBBBB")
    (folder / "known_hosts").write_text(f"{name} {kind} {other}\n")
    for target in (stranger, replace(stranger, accept_new=True), replace(stranger, host_key=key.fingerprint)):
        with pytest.raises(ChangedHostKey) as caught:
            works(target, folder)
        assert caught.value.offered == key.fingerprint
        assert caught.value.known == hostkeys.fingerprint(other)
    assert known(folder) == [f"{name} {kind} {other}"]


def through(host: LabHost, folder: Path, way: str) -> Target:
    """A target behind `host`: `way` is the command of an ssh_config's ProxyCommand."""
    target = host.target()
    options = " ".join(f"-o {option}" for option in target.options)
    command = f"ssh {options} -i {target.identity} -o BatchMode=yes -W {way} root@{target.address}"
    return replace(target, options=(*target.options, f"ProxyCommand={command}"))


def test_a_host_behind_another_is_reached(host: LabHost, folder: Path) -> None:
    assert works(through(host, folder, "%h:%p"), folder)


def test_a_host_behind_another_that_does_not_answer_says_who_failed(host: LabHost, folder: Path) -> None:
    with pytest.raises(Unreached, match=r"host on the way .* could not reach it: Connection refused"):
        works(through(host, folder, "127.0.0.1:9"), folder)


def test_a_command_that_takes_too_long_is_left_and_the_session_goes_on(host: LabHost, folder: Path) -> None:
    with ssh.Session(host.target(), folder / "c") as session:
        session.open()
        began = time.monotonic()
        with pytest.raises(Unreached, match="no answer within 1 s"):
            session.run(["sleep", "300"], timeout=1)
        assert time.monotonic() - began < 5
        assert session.run(["echo", "on"]).stdout == b"on\n"
        assert session.run(["sh", "-c", "exit 255"]).rc == 255


def test_input_and_output_of_any_bytes_pass(host: LabHost, folder: Path) -> None:
    data = bytes(range(256)) * 4096
    with ssh.Session(host.target(), folder / "c") as session:
        assert session.run(["cat"], data).stdout == data
        assert session.run(["printf", "%s|", "it's", 'a "b"', "$HOME;", "*"]).out == 'it\'s|a "b"|$HOME;|*|'


def test_a_connection_that_is_cut_is_told_and_can_be_made_anew(host: LabHost, folder: Path) -> None:
    with ssh.Session(host.target(), folder / "c") as session:
        session.open()
        with pytest.raises(Unreached):
            session.run(["sh", "-c", "kill -9 $PPID"], timeout=20)
        assert not session.alive()
        session.close()
        assert session.run(["echo", "again"]).stdout == b"again\n"
    assert not session.control_path.exists()


def test_the_master_of_a_killed_run_is_ended_by_the_next(
    host: LabHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, write = os.pipe()
    if os.fork() == 0:  # a run that is killed while it is connected
        folder = control.ControlFolder()
        ssh.Session(host.target(), folder.path).open()
        os.write(write, f"{folder.path}\n".encode())
        os.kill(os.getpid(), signal.SIGKILL)
    os.close(write)
    os.wait()
    with os.fdopen(read) as told:
        left = Path(told.readline().strip())
    masters = ["pgrep", "-fc", f"ControlPath={left}|{left}/.*mux"]
    assert list(left.iterdir())
    assert subprocess.run(masters, capture_output=True).returncode == 0
    monkeypatch.setattr(control, "YOUNG", 0.0)
    with control.ControlFolder():
        assert not left.exists()
    wait_for(lambda: subprocess.run(masters, capture_output=True).returncode != 0, 10, "the master is gone")
