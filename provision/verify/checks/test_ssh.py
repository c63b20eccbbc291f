"""Logging in, tried by plain OpenSSH on new connections."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from provision.access import fresh

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
