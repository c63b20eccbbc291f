"""Takes a recording of one host over an open session: one command, one program on standard input."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol

from ..errors import Unreached
from . import items
from .model import Recording
from .program import NoAnswer, Program, answer, program

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..transport.target import Target

SPARE_SECONDS = 20.0
"""What the way there and back may take beyond the collector's own limit."""


class Completed(Protocol):
    @property
    def rc(self) -> int: ...
    @property
    def stdout(self) -> bytes: ...
    @property
    def stderr(self) -> bytes: ...


class Session(Protocol):
    """What a recording needs of a transport: ssh.Session and local.Local have it."""

    @property
    def sudo_password(self) -> str | None: ...
    def run(self, argv: Sequence[str], stdin: bytes = b"", timeout: float = ...) -> Completed: ...


def record(session: Session, *, target: Target, redact: bool = False) -> Recording:
    """All items of one host. Raises Unreached where the host gives no whole answer.

    `redact` replaces names, addresses, serial numbers and user names, for a recording that is passed on.
    """
    sent = program(sudo_password=session.sudo_password)
    taken = datetime.now(UTC)
    done = session.run(sent.argv, sent.stdin, items.TOTAL_SECONDS + SPARE_SECONDS)
    recording = from_output(done.stdout, done.stderr, sent, host=target.name, taken=taken)
    if redact:
        from .redact import redacted

        return redacted(recording)
    return recording


def from_output(
    stdout: bytes | str, stderr: bytes | str, sent: Program, *, host: str, taken: datetime | None = None
) -> Recording:
    """The recording in what the program printed. `taken` is by our clock: a host's clock may be wrong."""
    said = stderr if isinstance(stderr, str) else stderr.decode("utf-8", "replace")
    try:
        document = answer(stdout, sent.token)
    except NoAnswer as e:
        raise Unreached(f"the host could not be recorded: {e}", host=host, do=_last_words(said)) from e
    answers: dict[str, Any] = document["items"]
    _note_sudo(answers, said, as_root=document["as_root"])
    return Recording(
        host=host,
        taken=(taken or datetime.now(UTC)).strftime("%Y-%m-%dT%H:%M:%SZ"),
        as_root=bool(document["as_root"]),
        seconds=float(document["seconds"]),
        items=answers,
    )


# How the lines begin in which sudo, sudo-rs, or the shell that finds neither says no.
_SUDO = r"sudo(?:-rs)?: |\S*sh: .*sudo: |\S+ is not in the sudoers file|Sorry, user "


def _note_sudo(answers: dict[str, Any], said: str, *, as_root: bool) -> None:
    """Why there were no rights, in sudo's own words: an audit that could not see says how it could."""
    words = re.findall(rf"(?m)^(?:{_SUDO}).*$", said)
    if not as_root and words and "stdout" in answers.get("rights", {}):
        known = json.loads(answers["rights"]["stdout"])
        known["says"] = words[-1].strip()  # before it sudo may have grumbled about the host's name
        answers["rights"] = {**answers["rights"], "stdout": json.dumps(known)}


def _last_words(said: str) -> str:
    lines = [line for line in said.splitlines() if line.strip()]
    return f"it said: {lines[-1].strip()}" if lines else "it said nothing"
