"""Which private keys count as at hand, and what ssh is told for the proof of an administrator."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from provision.access import administrators, fresh
from provision.access.door import Door

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[tuple[Door, str]]:
    """Every login that was tried, and how it would have become root; each holds."""
    found: list[tuple[Door, str]] = []

    def login(door: Door, *, become: str = "", **_: Any) -> fresh.Proof:
        found.append((door, become))
        return fresh.Proof(True, "works")

    monkeypatch.setattr(fresh, "login", login)
    monkeypatch.setattr(administrators, "_agent", lambda _: [])
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".ssh").mkdir()
    return found


def made(path: Path, passphrase: str = "") -> str:
    argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-C", "", "-f", str(path)]
    subprocess.run(argv, check=True)
    return path.with_name(f"{path.name}.pub").read_text().strip()


DOOR = Door("192.0.2.1", ("-l", "root", "-i", "/keys/other"))


def test_a_key_in_the_ssh_folder_is_tried_before_the_doors_own(
    tried: list[tuple[Door, str]], tmp_path: Path
) -> None:
    key = made(tmp_path / ".ssh" / "ada")
    proof = administrators.prove(DOOR, "ada", [key], sudo=True)
    assert proof is not None
    assert proof.holds
    [(door, become)] = tried
    ours = ("User=ada", f'IdentityFile="{tmp_path}/.ssh/ada"', "IdentitiesOnly=yes")
    assert door.options == (*(word for option in ours for word in ("-o", option)), *DOOR.options)
    assert become == "sudo -n "


@pytest.mark.parametrize("named", [("-i", "{}"), ("-o", "IdentityFile={}"), ("-o", 'identityfile "{}"')])
def test_a_key_that_the_run_names_itself(
    tried: list[tuple[Door, str]], tmp_path: Path, named: tuple[str, str]
) -> None:
    key = made(tmp_path / "mine")
    door = Door("192.0.2.1", (named[0], named[1].format(tmp_path / "mine")))
    assert administrators.prove(door, "ada", [key], sudo=False) is not None
    assert tried[0][1] == ""


@pytest.mark.parametrize("why", ["nothing", "public", "passphrase", "another"])
def test_not_at_hand(tried: list[tuple[Door, str]], tmp_path: Path, why: str) -> None:
    key = made(tmp_path / ".ssh" / "ada", "secret" if why == "passphrase" else "")
    if why in ("nothing", "public"):
        (tmp_path / ".ssh" / "ada").unlink()
    if why == "nothing":
        (tmp_path / ".ssh" / "ada.pub").unlink()
    wanted = made(tmp_path / "elsewhere") if why == "another" else key
    assert administrators.prove(DOOR, "ada", [wanted], sudo=True) is None
    assert not tried


def test_a_key_of_the_agent_is_named_by_its_public_half(
    tried: list[tuple[Door, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = made(tmp_path / "agent")
    monkeypatch.setattr(administrators, "_agent", lambda _: ["ssh-ed25519 AAAA other", f"{key} in the agent"])
    assert administrators.prove(DOOR, "ada", [key], sudo=True) is not None
    assert ".pub" in tried[0][0].options[3]


def test_an_agent_that_the_door_does_not_use_is_not_asked() -> None:
    assert administrators._agent(Door("h", ("-o", "IdentityAgent=none"))) == []
