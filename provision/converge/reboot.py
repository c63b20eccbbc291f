"""Reboot a host and wait until another boot of it answers on a new connection."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ..errors import Failure, Unreached
from ..transport import ssh
from ..transport.control import ControlFolder

if TYPE_CHECKING:
    from pathlib import Path

    from ..transport.target import Target

BOOT_ID = "/proc/sys/kernel/random/boot_id"
DOWN_SECONDS = 180.0
# Servers with much memory and many cards take ten minutes and more in their firmware.
UP_SECONDS = 1800.0
POLL_SECONDS = 2.0
# Nothing of the password stands in an argument; sudo without a password to ask for leaves its input alone.
REBOOT = 'if [ "$(id -u)" = 0 ]; then exec systemctl reboot; else exec sudo -S -p "" -- systemctl reboot; fi'


def reboot(
    target: Target,
    *,
    sudo_password: str | None = None,
    login_password: str | None = None,
    up_seconds: float = UP_SECONDS,
) -> float:
    """Reboot; the seconds until a new boot answered. Sessions that were open to the host are dead afterwards.

    `login_password` is given where no key gets in.

    Raises Failure where the host refuses, does not go down, or is not back in time, and for the machine that
    we run on.
    """
    if target.local:
        raise Failure("the machine that this runs on does not restart itself", host=target.name)
    with ControlFolder() as folder:
        with ssh.Session(target, folder.path, sudo_password, login_password) as session:
            before = boot_id(session)
            _order(session, sudo_password)
        return _wait(target, folder.path, before, up_seconds, login_password)


def _order(session: ssh.Session, sudo_password: str | None) -> None:
    try:
        done = session.run(["sh", "-c", REBOOT], f"{sudo_password or ''}\n".encode(), 60.0)
    except Unreached:
        return  # the line was cut before the command ended; whether it was by the reboot will show
    if done.rc != 0:
        raise Failure(
            f"the host refuses to reboot: {done.err.strip() or f'code {done.rc}'}", host=session.target.name
        )


def boot_id(session: ssh.Session) -> str:
    """The id of the boot that answers."""
    done = session.run(["cat", BOOT_ID], b"", 20.0)
    if done.rc != 0:
        raise Failure(f"{BOOT_ID} cannot be read: {done.err.strip()}", host=session.target.name)
    return done.out.strip()


def _wait(
    target: Target, control_dir: Path, before: str, up_seconds: float, login_password: str | None
) -> float:
    began, said, down = time.monotonic(), "it never went down", False
    while (waited := time.monotonic() - began) < (up_seconds if down else DOWN_SECONDS):
        time.sleep(POLL_SECONDS)
        try:
            with ssh.Session(target, control_dir, login_password=login_password) as session:
                if boot_id(session) != before:
                    return time.monotonic() - began
        except Failure as e:
            said, down = e.says, True
    raise Failure(f"the host was not back {waited:.0f} s after its reboot: {said}", host=target.name)
