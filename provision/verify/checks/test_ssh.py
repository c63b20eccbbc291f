"""Logging in, tried by plain OpenSSH on new connections."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from provision.access import administrators, fresh

if TYPE_CHECKING:
    from provision.verify.subject import Subject


@pytest.fixture(autouse=True)
def over_the_network(subject: Subject) -> None:
    if subject.target.local:
        pytest.skip("this machine is not reached over SSH")


def test_key_gets_in(subject: Subject) -> None:
    """A key alone opens a new session."""
    proof = fresh.login(subject.door)
    assert proof.holds, proof.says


def test_password_is_refused(subject: Subject) -> None:
    """A password opens no session."""
    proof = fresh.password_refused(subject.door)
    assert proof.holds, proof.says


def test_password_is_refused_for_root(subject: Subject) -> None:
    """A password opens no session as root."""
    proof = fresh.password_refused(subject.door.as_user("root"))
    assert proof.holds, proof.says


def test_administrators_get_in(subject: Subject) -> None:
    """Administrators of the profile get in with a key and may become root."""
    wanted = subject.profile["ssh_hardening_admins"]
    if not wanted:
        pytest.skip("the profile names none")
    proofs = {
        admin["name"]: administrators.prove(subject.door, admin["name"], admin["keys"], sudo=admin["sudo"])
        for admin in wanted
    }
    wrong = [f"{name}: {proof.says}" for name, proof in proofs.items() if proof and not proof.holds]
    assert not wrong, "; ".join(wrong)
    if unproven := [name for name, proof in proofs.items() if proof is None]:
        proven = [name for name in proofs if name not in unproven]
        also = f"; proven: {', '.join(proven)}" if proven else ""
        pytest.skip(f"no private key of {', '.join(unproven)} can be used on this machine{also}")
