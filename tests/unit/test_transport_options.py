"""The command lines for OpenSSH."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from provision.errors import Usage
from provision.transport import ssh
from provision.transport.target import Target

TARGET = Target("gpu01", "203.0.113.9", user="admin", port=2222, identity="/etc/hostname")


def effective(arguments: list[str]) -> dict[str, str]:
    """What OpenSSH makes of a command line, by its own account."""
    said = subprocess.run(
        ["ssh", "-G", "-F", "/dev/null", *arguments[1:]], capture_output=True, text=True, check=True
    )
    found: dict[str, str] = {}
    for line in said.stdout.splitlines():
        key, _, value = line.partition(" ")
        found.setdefault(key, value)
    return found


needs_ssh = pytest.mark.skipif(shutil.which("ssh") is None, reason="OpenSSH is not installed here")


@needs_ssh
def test_a_fresh_connection_is_fresh_and_asks_nothing() -> None:
    made = effective(ssh.fresh_args(TARGET))
    assert (made["hostname"], made["user"], made["port"]) == ("203.0.113.9", "admin", "2222")
    assert (made["controlmaster"], made["batchmode"], made["identityfile"]) == (
        "false",
        "yes",
        "/etc/hostname",
    )
    assert made.get("controlpath", "none") == "none"
    assert made["stricthostkeychecking"] == "true"
    assert 0 < int(made["connecttimeout"]) <= 30


@needs_ssh
def test_a_new_key_is_taken_only_where_that_was_said() -> None:
    assert (
        effective(ssh.fresh_args(replace(TARGET, accept_new=True)))["stricthostkeychecking"] == "accept-new"
    )


@needs_ssh
@pytest.mark.parametrize(
    ("said", "strict"), [("no", "accept-new"), ("accept-new", "accept-new"), ("yes", "true"), ("ask", "true")]
)
def test_no_inventory_makes_a_changed_key_pass(said: str, strict: str) -> None:
    target = replace(TARGET, options=(f"StrictHostKeyChecking={said}",))
    assert effective(ssh.fresh_args(target))["stricthostkeychecking"] == strict


@needs_ssh
def test_the_targets_own_options_win() -> None:
    made = effective(
        ssh.fresh_args(replace(TARGET, options=("ConnectTimeout=3", "UserKnownHostsFile=/x/known")))
    )
    assert made["connecttimeout"] == "3"
    assert made["userknownhostsfile"] == "/x/known"


@needs_ssh
def test_an_address_is_never_an_option() -> None:
    assert effective(ssh.fresh_args(Target("x", "host.example")))["hostname"] == "host.example"
    arguments = ssh.fresh_args(Target("x", "-oProxyCommand=touch /tmp/owned"))
    assert arguments[-2:] == ["--", "-oProxyCommand=touch /tmp/owned"]


def test_the_control_path_fits_into_a_socket_address(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 60) / ("e" * 60)
    session = ssh.Session(TARGET, deep)
    try:
        assert len(str(session.control_path).encode()) + 17 < 104
        assert session.control_path.parent.stat().st_mode & 0o077 == 0
    finally:
        session.close()
    assert not session.control_path.parent.exists()
    assert ssh.Session(TARGET, Path("/tmp/x")).control_path.parent == Path("/tmp/x")


def test_two_targets_never_share_a_control_path() -> None:
    paths = {
        ssh.Session(target, Path("/tmp/x")).control_path
        for target in (
            TARGET,
            replace(TARGET, user="root"),
            replace(TARGET, port=22),
            replace(TARGET, options=("A=b",)),
        )
    }
    assert len(paths) == 4


@pytest.mark.parametrize("text", ["MD5:aa:bb", "SHA256:short", "", "SHA256:" + "A" * 44])
def test_a_pin_that_is_no_fingerprint_is_refused_before_anything_is_sent(text: str) -> None:
    with pytest.raises(Usage, match="is no fingerprint"):
        ssh.pinned(replace(TARGET, host_key=text))
