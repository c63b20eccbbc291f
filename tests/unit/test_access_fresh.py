"""Fresh logins, against programs that stand in for ssh and say what OpenSSH says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from provision.access import fresh
from provision.access.door import Door, door_to
from provision.transport.target import Target

if TYPE_CHECKING:
    from pathlib import Path


def door(tmp_path: Path, body: str) -> Door:
    path = tmp_path / "ssh"
    path.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >{tmp_path}/argv\nfor last; do :; done\n{body}\n')
    path.chmod(0o755)
    return Door("host", ("-o", "Port=2222"), str(path))


def test_a_login_holds_only_if_the_host_ran_our_command(tmp_path: Path) -> None:
    proof = fresh.login(door(tmp_path, 'echo "Welcome 1000"; sh -c "$last"'))
    assert proof.holds
    assert proof.uid is not None
    forced = fresh.login(door(tmp_path, "echo your backup is done"))
    assert not forced.holds
    assert "forced command" in forced.says


@pytest.mark.parametrize(
    ("stderr", "says", "offered", "reached"),
    [
        (
            "root@h: Permission denied (publickey,password).",
            "Permission denied",
            ("publickey", "password"),
            True,
        ),
        ("root@h: Permission denied ().", "Permission denied", (), True),
        ("Host key verification failed.", "Host key verification failed", (), True),
        ("ssh: connect to host h port 22: Connection refused", "Connection refused", (), False),
        ("kex_exchange_identification: Connection closed by remote host", "closed", (), False),
        ("*********\nConnection timed out during banner exchange", "timed out", (), False),
    ],
)
def test_a_refused_login_says_why(
    tmp_path: Path, stderr: str, says: str, offered: tuple[str, ...], reached: bool
) -> None:
    proof = fresh.login(door(tmp_path, f'echo "{stderr}" >&2; exit 255'))
    assert not proof.holds
    assert says in proof.says
    assert proof.offered == offered
    assert proof.reached is reached


@pytest.mark.parametrize(
    ("body", "holds", "says"),
    [
        ('echo "h: Permission denied (publickey)." >&2; exit 255', True, "publickey only"),
        ('echo "h: Permission denied (publickey,password)." >&2; exit 255', False, "still offers password"),
        (
            'echo "h: Permission denied (publickey,keyboard-interactive)." >&2; exit 255',
            False,
            "still offers keyboard-interactive",
        ),
        ('echo "Connection refused" >&2; exit 255', False, "Connection refused"),
        ('echo "h: Permission denied ()." >&2; exit 255', False, "Permission denied ()"),
        ("exit 0", False, "neither key nor password"),
        ("exit 255", False, "no reason"),
    ],
)
def test_a_password_is_refused_only_if_the_server_says_so(
    tmp_path: Path, body: str, holds: bool, says: str
) -> None:
    proof = fresh.password_refused(door(tmp_path, body))
    assert proof.holds is holds
    assert says in proof.says


def test_a_server_that_says_nothing_is_given_up(tmp_path: Path) -> None:
    proof = fresh.login(door(tmp_path, "exec sleep 30"), timeout=0.3)
    assert (proof.holds, proof.reached) == (False, False)
    assert "no answer within" in proof.says


def test_a_missing_ssh_is_named() -> None:
    assert "no-such-ssh" in fresh.login(Door("host", ssh="/no-such-ssh")).says


def test_ours_stand_before_the_users_options_and_theirs_before_our_defaults(tmp_path: Path) -> None:
    fresh.login(door(tmp_path, "exit 255"))
    argv = (tmp_path / "argv").read_text().splitlines()
    order = [
        argv.index(word) for word in ("ControlPath=none", "PreferredAuthentications=publickey", "Port=2222")
    ]
    assert order == sorted(order)
    assert argv.index("Port=2222") < argv.index("ConnectTimeout=15")
    assert argv[-3:-1] == ["--", "host"]


def test_the_way_to_a_target_is_that_of_recordings() -> None:
    target = Target("gpu01", "10.0.0.1", user="ada", port=2222, identity="/k", options=("ProxyJump=bastion",))
    way = door_to(target)
    assert way.destination == "10.0.0.1"
    assert "ProxyJump=bastion" in way.options
    assert way.as_user("root").options[:2] == ("-o", "User=root")
