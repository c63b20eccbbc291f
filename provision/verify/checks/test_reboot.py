"""What is left after a reboot. Asked for by name only: it takes the host away for minutes."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from provision import controls
from provision.access import fresh
from provision.controls.model import Finding, Status
from provision.converge.reboot import reboot
from provision.facts import Facts
from provision.recording import remote
from provision.transport import ssh

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provision.verify.subject import Subject

SETTLE_SECONDS = 180.0
POLL_SECONDS = 3.0


@pytest.fixture(scope="module")
def rebooted(subject: Subject) -> Iterator[ssh.Session]:
    """A new session to the host after a reboot that this fixture made."""
    if subject.target.local:
        pytest.skip("this machine does not restart itself")
    login = subject.login_password
    reboot(subject.target, sudo_password=subject.sudo_password, login_password=login)
    with (
        tempfile.TemporaryDirectory(prefix="gp-") as folder,
        ssh.Session(subject.target, Path(folder), subject.sudo_password, login) as session,
    ):
        yield session


def judged(subject: Subject, facts: Facts) -> dict[str, Finding]:
    return {f.control: f for f in controls.judge(facts, subject.profile, subject.stack)}


def test_settings_are_back(rebooted: ssh.Session, subject: Subject, facts: Facts) -> None:
    """What held before a reboot holds after it."""
    held = [name for name, f in judged(subject, facts).items() if f.status is Status.PASS]
    began = time.monotonic()
    while True:
        now = judged(subject, Facts(remote.record(rebooted, target=subject.target)))
        lost = [now[name] for name in held if now[name].status is not Status.PASS]
        # Units that bring settings back may still be at it right after the boot.
        if not lost or time.monotonic() - began > SETTLE_SECONDS:
            break
        time.sleep(POLL_SECONDS)
    assert not lost, "\n".join(
        f"{f.control}: {f.status}, expected {f.expected}, found {f.actual}" for f in lost
    )


def test_key_gets_in(rebooted: ssh.Session, subject: Subject) -> None:
    """A key alone opens a new session after a reboot."""
    proof = fresh.login(subject.door)
    assert proof.holds, proof.says


def test_password_is_refused(rebooted: ssh.Session, subject: Subject) -> None:
    """A password opens no session after a reboot."""
    for door in (subject.door, subject.door.as_user("root")):
        proof = fresh.password_refused(door)
        assert proof.holds, proof.says
