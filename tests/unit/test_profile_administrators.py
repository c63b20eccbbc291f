"""Administrators of a profile: names, and keys as text or as files of this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from ssh_hosts import KEY, KEY_2, PRINT

from provision.errors import Usage
from provision.profile import presets
from provision.profile.administrators import expanded, fingerprint, public_key, wrong
from provision.profile.compose import compose

if TYPE_CHECKING:
    from pathlib import Path

BLOB = KEY.split()[1]


def ada(**more: Any) -> dict[str, Any]:
    return {"name": "ada", "keys": [KEY], **more}


def test_keys_are_text_or_files_and_each_is_there_once(tmp_path: Path) -> None:
    file = tmp_path / "ada.pub"
    file.write_text(f"# Ada's\n\n{KEY_2}\n{KEY}\n")
    assert expanded([ada(keys=[KEY, str(file)])]) == [{"name": "ada", "keys": [KEY, KEY_2], "sudo": True}]
    assert expanded([ada(sudo=False)])[0]["sudo"] is False


def test_files_are_found_from_home_and_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ada key.pub").write_text(KEY)
    for named in ("~/ada key.pub", "./ada key.pub"):
        assert expanded([ada(keys=[named])])[0]["keys"] == [KEY]


def test_a_profile_holds_text_only_and_may_be_composed_again(tmp_path: Path) -> None:
    file = tmp_path / "ada.pub"
    file.write_text(KEY)
    name, base = presets.load("dev")
    profile = compose(name, base, {}, {"ssh_hardening_admins": [ada(keys=[str(file)])]})
    assert profile["ssh_hardening_admins"] == [{"name": "ada", "keys": [KEY], "sudo": True}]
    again = compose(name, base, {}, {"ssh_hardening_admins": profile["ssh_hardening_admins"]})
    assert again["ssh_hardening_admins"] == profile["ssh_hardening_admins"]


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("ada", "must be a list"),
        (["ada"], "must be a list of {name, keys, sudo}"),
        ([ada(key=KEY)], "key is unknown"),
        ([ada(name="Ada")], "'Ada' is no name for an account"),
        ([ada(name="ada;id")], "is no name"),
        ([ada(name="a" * 33)], "is no name"),
        ([ada(name="root")], "root needs no place"),
        ([ada(sudo="yes")], "sudo must be true or false"),
        ([ada(keys=[])], "has no key"),
        ([ada(keys=KEY)], "has no key"),
        ([ada(), ada()], "in the list twice"),
        ([ada(keys=[""])], "a key is the text"),
        ([ada(keys=["/no/such/key.pub"])], "/no/such/key.pub: No such file"),
        ([ada(keys=["-----BEGIN OPENSSH PRIVATE KEY-----\nx"])], "that is a private key"),
        ([ada(keys=[f'command="id" {KEY}'])], "options before a key are not taken"),
        ([ada(keys=[f"cert-authority {KEY}"])], "options before a key"),
        ([ada(keys=[f"ssh-ed25519-cert-v01@openssh.com {BLOB}"])], "that is a certificate"),
        ([ada(keys=[f"ssh-dss {BLOB}"])], "'ssh-dss' is no kind"),
        ([ada(keys=[f"ssh-rsa {BLOB}"])], "the key after ssh-rsa is damaged"),
        ([ada(keys=[f"ssh-ed25519 {BLOB[:40]}"])], "damaged or cut"),
        ([ada(keys=["ssh-ed25519 not!base64"])], "damaged or cut"),
        ([ada(keys=[f"{KEY}\n{KEY_2}"])], "one line is one key"),
    ],
)
def test_what_is_no_administrator(value: Any, says: str) -> None:
    assert says in (wrong(value) or "")
    with pytest.raises(Usage, match="ssh_hardening_admins: "):
        compose("test", {"ssh_hardening_admins": value}, {}, {})


@pytest.mark.parametrize("name", ["private", "empty", "binary"])
def test_files_without_a_public_key(name: str, tmp_path: Path) -> None:
    texts = {"private": b"-----BEGIN OPENSSH PRIVATE KEY-----\n", "empty": b"# none\n", "binary": b"\xff\xfe"}
    (tmp_path / name).write_bytes(texts[name])
    told = wrong([ada(keys=[str(tmp_path / name)])]) or ""
    assert str(tmp_path / name) in told
    assert "BEGIN" not in told


def test_fingerprints_are_those_of_ssh_keygen() -> None:
    assert fingerprint(KEY) == PRINT
    assert public_key(f"  ssh-ed25519   {BLOB}   ada  at   desk ") == f"ssh-ed25519 {BLOB} ada at desk"
