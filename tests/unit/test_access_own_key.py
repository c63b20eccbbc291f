"""Which public key goes to a host."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from provision.access.own_key import checked, own_key
from provision.errors import Usage
from provision.transport.target import Target

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    path = tmp_path / "id_ed25519"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "me", "-f", str(path)], check=True)
    return path


def test_the_named_identity(key: Path) -> None:
    target = Target("h", "192.0.2.1", identity=str(key))
    public = key.with_suffix(".pub")
    text = public.read_text().strip()
    assert own_key(target) == text
    public.unlink()
    assert own_key(target).split()[:2] == text.split()[:2], "read from the key itself"


def test_an_identity_of_ssh_config(key: Path, tmp_path: Path) -> None:
    target = Target("h", "192.0.2.1", options=(f"IdentityFile={key}",))
    assert own_key(target) == key.with_suffix(".pub").read_text().strip()


def test_none_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    with pytest.raises(Usage, match="no SSH key to install"):
        own_key(Target("h", "192.0.2.1", options=(f"IdentityFile={tmp_path}/none",)))
    with pytest.raises(Usage, match="has no public key beside it"):
        own_key(Target("h", "192.0.2.1", identity=f"{tmp_path}/none"))


def test_only_one_public_key_passes(key: Path) -> None:
    public = key.with_suffix(".pub").read_text()
    assert checked(public) == public.strip()
    for text in (key.read_text(), public * 2, "", "ssh-ed25519", "hello"):
        with pytest.raises(Usage, match="no public key"):
            checked(text)
