"""The program that hands OpenSSH a login's password: whom it answers, and where the password is meanwhile."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from provision.transport import askpass
from provision.transport.target import Target

if TYPE_CHECKING:
    from collections.abc import Mapping

TARGET = Target("gpu01", "newhost.example", user="root")
PASSWORD = " it's \\ a \"pass$word  "


def asked(env: Mapping[str, str], prompt: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([env["SSH_ASKPASS"], prompt], env=env, capture_output=True, text=True, timeout=10)


@pytest.mark.parametrize("prompt", ["root@newhost.example's password: ", "(root@newhost.example) Password: "])
def test_the_password_is_given_for_this_login(prompt: str) -> None:
    with askpass.answering(TARGET, PASSWORD) as env:
        assert asked(env, prompt).stdout == f"{PASSWORD}\n"
        assert asked(env, prompt).stdout == f"{PASSWORD}\n", "a server may ask by two methods"


@pytest.mark.parametrize(
    "prompt",
    [
        "root@bastion.example's password: ",
        "ada@newhost.example's password: ",
        "(root@bastion.example) Password: ",
        "(root@newhost.example) New password: ",
        "(root@newhost.example) Current password: ",
        "(root@newhost.example) Verification code: ",
        "Enter root@newhost.example's old password: ",
        "Enter passphrase for key '/root/.ssh/id_ed25519': ",
        "Are you sure you want to continue connecting (yes/no/[fingerprint])? ",
    ],
)
def test_nobody_else_is_given_it(prompt: str) -> None:
    with askpass.answering(TARGET, PASSWORD) as env:
        done = asked(env, prompt)
    assert (done.returncode, done.stdout) == (1, "")


def test_it_is_in_no_environment_and_no_file_and_nothing_stays() -> None:
    with askpass.answering(TARGET, "Sesame") as env:
        assert not any("Sesame" in value for value in env.values())
        folder = Path(env["SSH_ASKPASS"]).parent
        assert folder.stat().st_mode & 0o777 == 0o700
        assert not any("Sesame" in file.read_text() for file in folder.iterdir() if file.is_file())
    assert not folder.exists()


def test_a_host_key_alias_is_how_ssh_calls_the_host() -> None:
    with askpass.answering(Target("g", "192.0.2.1", user="root", options=("HostKeyAlias=gpu",)), "x") as env:
        assert env["GPU_PROVISION_LOGIN"] == "root@gpu"
