"""The program that installs a key, run by this machine's sh for an account that is made up."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from provision.access.install_key import SCRIPT

if TYPE_CHECKING:
    from pathlib import Path

KEY = f"ssh-ed25519 {'A' * 60} me@here"
OTHER = f"ssh-rsa {'B' * 60} other"


@dataclass
class Account:
    """An account `ada` below a temporary folder. `pattern` is what its sshd says of AuthorizedKeysFile."""

    root: Path
    pattern: str = ".ssh/authorized_keys .ssh/authorized_keys2"

    @property
    def home(self) -> Path:
        return self.root / "home" / "ada"

    @property
    def file(self) -> Path:
        return self.home / ".ssh" / "authorized_keys"

    def install(self, key: str = KEY) -> subprocess.CompletedProcess[str]:
        tools = self.root / "bin"
        tools.mkdir(exist_ok=True)
        for name, body in {
            "id": "case $1 in -un) echo ada ;; -u) echo 0 ;; esac",
            "getent": f"echo ada:x:0:0::{self.home}:/bin/sh",
            "sshd": f"echo 'port 22'; echo 'authorizedkeysfile {self.pattern}'",
        }.items():
            (tools / name).write_text(f"#!/bin/sh\n{body}\n")
            (tools / name).chmod(0o755)
        environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}
        return subprocess.run(
            ["sh", "-c", SCRIPT, "sh", key], capture_output=True, text=True, env=environment, check=False
        )


@pytest.fixture
def account(tmp_path: Path) -> Account:
    (tmp_path / "home").mkdir()
    return Account(tmp_path)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_a_missing_home_is_made_with_right_modes(account: Account) -> None:
    done = account.install()
    assert done.stdout == f"gpu-provision-key installed {account.file}\n", done.stderr
    assert account.file.read_text() == f"{KEY}\n"
    assert (mode(account.home), mode(account.file.parent), mode(account.file)) == (0o700, 0o700, 0o600)


def test_other_keys_stay_even_without_a_last_line_end(account: Account) -> None:
    account.file.parent.mkdir(parents=True)
    account.file.write_text(f"# mine\n{OTHER}")
    account.install()
    assert account.file.read_text() == f"# mine\n{OTHER}\n{KEY}\n"
    assert account.install().stdout.startswith("gpu-provision-key there")
    assert account.file.read_text().count(KEY) == 1


@pytest.mark.parametrize("line", [f"# {KEY}", f'command="/bin/true" {KEY}'])
def test_a_comment_or_a_forced_command_is_not_the_key(account: Account, line: str) -> None:
    account.file.parent.mkdir(parents=True)
    account.file.write_text(f"{line}\n")
    account.install()
    assert account.file.read_text() == f"{line}\n{KEY}\n"


def test_modes_that_sshd_would_refuse_are_tightened_and_others_kept(account: Account) -> None:
    account.file.parent.mkdir(parents=True)
    account.file.write_text(f"{KEY}\n")
    account.home.chmod(0o775)
    account.file.parent.chmod(0o777)
    account.file.chmod(0o664)
    assert account.install().returncode == 0
    assert (mode(account.home), mode(account.file.parent), mode(account.file)) == (0o755, 0o755, 0o644)


@pytest.mark.parametrize(
    ("pattern", "file"),
    [
        ("%h/keys/%u", "home/ada/keys/ada"),
        ("{root}/etc/keys/%u", "etc/keys/ada"),
        ("{root}/etc/100%%/%U .ssh/authorized_keys", "etc/100%/0"),
    ],
)
def test_the_file_is_where_sshd_looks(account: Account, pattern: str, file: str) -> None:
    account.pattern = pattern.replace("{root}", str(account.root))
    done = account.install()
    assert (account.root / file).read_text() == f"{KEY}\n", done.stderr


def test_a_host_without_key_files_is_told(account: Account) -> None:
    account.pattern = "none"
    done = account.install()
    assert done.returncode == 3
    assert "sshd reads no key files here" in done.stderr
    assert not account.home.exists()
