"""An audit that could not see what only root may read says why, and what helps."""

from __future__ import annotations

import json

import pytest

from provision.facts import Facts
from provision.recording.model import Recording
from provision.runs.rights import unseen


def facts(rights: dict[str, object] | None, *, as_root: bool = False, python: bool = True) -> Facts:
    items = {"python": {"rc": 0, "stdout": "Python 3.11.2\n"} if python else {"missing": True}}
    if rights is not None:
        items["rights"] = {"rc": 0, "stdout": json.dumps(rights)}
    return Facts(Recording("gpu01", "2026-11-30T12:00:00Z", as_root, 0.1, items))


@pytest.mark.parametrize(
    ("said", "helps"),
    [
        ("sudo: a password is required", "--ask-become-pass"),
        ("sudo: the password was not accepted", "the login user's own"),
        ("sudo: command not found", "log in as root"),
        (None, "log in as root"),
    ],
)
def test_why_there_were_no_rights(said: str | None, helps: str) -> None:
    told = unseen(facts({"user": "ada", "root": False, "says": said}))
    assert told.startswith("ada has no root rights there")
    assert (said or "") in told
    assert helps in told


def test_nothing_is_said_where_rights_are_not_what_was_missing() -> None:
    assert unseen(facts({"user": "root", "root": True}, as_root=True)) == ""
    assert unseen(facts(None)) == ""
    assert unseen(facts({"user": "ada", "root": False}, python=False)) == ""
