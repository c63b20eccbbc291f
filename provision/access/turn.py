"""One run a host: whoever changes a host holds a lock there, and others are told who does.

The lock is a flock(2) on a file that every host has, by a process at the other end of the open session: no
file is written, no rights are needed, and it is gone when the session is. A line that was cut is not noticed
over there for hours, so the lock also ends when no sign of life came for a while.
"""

from __future__ import annotations

import getpass
import os
import select
import socket
import subprocess
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from ..errors import Failure, Unreached

if TYPE_CHECKING:
    from collections.abc import Sequence

BEAT_SECONDS = 20.0
SILENCE_SECONDS = 120
"""How long a run may be cut off, or its machine asleep, before others may work on the host."""
ANSWER_SECONDS = 30.0

_SCRIPT = f"""
read -r who
flock -n -E 75 /etc/os-release sh -c '
    echo held
    while timeout {SILENCE_SECONDS} sh -c "read -r beat"; do :; done
' "gpu-provision-run:$who"
if [ $? = 75 ]; then
    holders=$(cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n' | sed -n 's/^gpu-provision-run://p')
    echo busy $holders | cut -d ';' -f 1
fi
"""


class Session(Protocol):
    def argv(self, command: Sequence[str]) -> list[str]: ...


class Turn:
    """The right to change one host. `release` gives it back; the host takes it back where we are gone."""

    def __init__(self, session: Session, host: str) -> None:
        """Raises Failure where another run has it, Unreached where the host does not answer."""
        self._over = threading.Event()
        # A session of its own: Ctrl-C at the terminal is for the run to handle, not for this process.
        self._process = subprocess.Popen(
            session.argv(["sh", "-c", _SCRIPT]),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._say(f"{_who()}\n")
        answer = self._answer()
        if answer != "held":
            self.release()
            raise _refusal(answer, host)
        threading.Thread(target=self._beat, daemon=True).start()

    def release(self) -> None:
        """Give the turn back. Safe to call twice."""
        self._over.set()
        assert self._process.stdin
        with suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        assert self._process.stdout
        self._process.stdout.close()

    def _answer(self) -> str:
        assert self._process.stdout
        ready, _, _ = select.select([self._process.stdout], [], [], ANSWER_SECONDS)
        return self._process.stdout.readline().decode("utf-8", "replace").strip() if ready else ""

    def _beat(self) -> None:
        while not self._over.wait(BEAT_SECONDS):
            self._say("\n")

    def _say(self, text: str) -> None:
        assert self._process.stdin
        with suppress(OSError, ValueError):  # it has ended, with the session or by us
            self._process.stdin.write(text.encode())
            self._process.stdin.flush()


def _refusal(answer: str, host: str) -> Failure:
    word, _, who = answer.partition(" ")
    if word == "busy":
        return Failure(
            f"another run of gpu-provision works on this host{f': {who}' if who else ''}",
            host=host,
            do="nothing was done here; run this again when that one has ended",
        )
    return Unreached("whether another run works on this host could not be found out", host=host)


def _who() -> str:
    """Who we are, for those who find the host taken. Ends in a semicolon: more processes than one bear it."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # an account without a name
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}, process {os.getpid()};"
