"""Proofs around a change, against a program that stands in for ssh and changes its mind as a server would."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from provision.access import proofs
from provision.access.door import Door

if TYPE_CHECKING:
    from pathlib import Path

LETS_IN = 'sh -c "$last"'
REFUSED = 'echo "Connection refused" >&2; exit 255'
DENIED = 'echo "root@h: Permission denied (publickey)." >&2; exit 255'
OPEN = 'echo "root@h: Permission denied (publickey,password)." >&2; exit 255'
STRANGE_KEY = 'echo "Host key verification failed." >&2; exit 255'


def door(tmp_path: Path, *answers: str, password: str = DENIED) -> Door:
    """A server that gives these answers to logins with a key, the last one for ever."""
    turns = "\n".join(f"{n}) {body} ;;" for n, body in enumerate(answers[:-1]))
    path = tmp_path / "ssh"
    path.write_text(
        f'#!/bin/sh\nfor last; do :; done\necho "$*" >>{tmp_path}/argv\n'
        f'case "$*" in *PubkeyAuthentication=no*) {password} ;; esac\n'
        f"turn=$(cat {tmp_path}/turn 2>/dev/null || echo 0); echo $((turn + 1)) >{tmp_path}/turn\n"
        f"case $turn in\n{turns}\n*) {answers[-1]} ;;\nesac\n"
    )
    path.chmod(0o755)
    return Door("h", ssh=str(path))


def after(way: Door, *, password_refused: bool = True) -> tuple[str | None, list[str]]:
    shown: list[str] = []
    return proofs.after(way, shown, time.monotonic() + 20, password_refused=password_refused), shown


def test_all_holds(tmp_path: Path) -> None:
    wrong, shown = after(door(tmp_path, LETS_IN))
    assert wrong is None
    assert len(shown) == 2


def test_a_daemon_that_listens_again_a_moment_later_is_waited_for(tmp_path: Path) -> None:
    assert after(door(tmp_path, REFUSED, REFUSED, LETS_IN))[0] is None


def test_a_refusal_is_an_answer_and_asked_once(tmp_path: Path) -> None:
    wrong, _ = after(door(tmp_path, DENIED, LETS_IN))
    assert wrong is not None
    assert "a fresh login does not work" in wrong
    assert len((tmp_path / "argv").read_text().splitlines()) == 1, "failures count against us at the server"


def test_a_daemon_that_never_comes_back_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proofs, "LISTENS_AGAIN", 0.5)
    wrong, _ = after(door(tmp_path, REFUSED))
    assert wrong is not None
    assert "Connection refused" in wrong


def test_an_open_password_is_wrong_where_it_was_asked_about(tmp_path: Path) -> None:
    wrong, _ = after(door(tmp_path, LETS_IN, password=OPEN))
    assert wrong is not None
    assert "still offers password" in wrong
    assert after(door(tmp_path, LETS_IN, password=OPEN), password_refused=False)[0] is None


@pytest.mark.parametrize(
    ("shown", "answer", "says"),
    [
        ([], LETS_IN, ""),
        ([], DENIED, "with the old files a fresh login does not work either"),
        (["after: Host key verification failed."], LETS_IN, "so run this again"),
        (["after: Host key verification failed."], STRANGE_KEY, "does not work either"),
    ],
)
def test_what_the_old_state_shows(tmp_path: Path, shown: list[str], answer: str, says: str) -> None:
    told = proofs.put_back(door(tmp_path, answer), shown)
    assert says in told
    assert bool(told) == bool(says)
    learned = "UpdateHostKeys=yes" in (tmp_path / "argv").read_text()
    assert learned == any("Host key" in line for line in shown[:-1]), "known_hosts is written at need only"
