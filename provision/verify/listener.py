"""A listener on the host for the length of a check: a refusal means something only where somebody listens."""

from __future__ import annotations

import json
import os
import secrets
import selectors
import shlex
import subprocess
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import Failure
from ..transport import ssh

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from .subject import Subject

PROGRAM = Path(__file__).with_name("on_host") / "answering.py"
SECONDS = 60
"""The listener ends itself after this time, whatever became of us."""
START_SECONDS = 20.0
_FIND = (
    "for python in python3 /usr/libexec/platform-python; do "
    'command -v "$python" >/dev/null 2>&1 && exec "$python" -c "$@"; done; '
    'echo "no python3 here" >&2; exit 97'
)


@dataclass(frozen=True)
class Listener:
    """Who connects to a port of `ports` that has no reason against it is given `token`.

    `seen_from` and `address` are ours and the host's, as the host sees the connection that started it; empty
    where it does not say.
    """

    token: str
    ports: Mapping[str, str | None]
    seen_from: str
    address: str


@contextmanager
def listening(subject: Subject, ports: Sequence[str]) -> Iterator[Listener]:
    """Answer on `ports` (`tcp:8000`) until the block ends. Raises Failure where nothing could be started.

    Runs as whoever logs in, over the session that is open, and so may not have ports below 1024.
    """
    token = secrets.token_hex(8)
    command = ["/bin/sh", "-c", _FIND, "sh", PROGRAM.read_text(encoding="utf-8"), token, str(SECONDS), *ports]
    process = subprocess.Popen(
        _argv(subject, command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    with process:
        try:
            said = json.loads(_first_line(process))
            client, _, server, *_ = [*str(said["connection"]).split(), "", "", ""]
            yield Listener(token, said["ports"], client, server)
        finally:
            assert process.stdin is not None
            process.stdin.close()
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()


def _argv(subject: Subject, command: list[str]) -> list[str]:
    """Over the run's session where there is one; a connection that waits for its end where there is none."""
    shared = ["-o", f"ControlPath={subject.control_path or 'none'}", "-o", "ControlMaster=no"]
    way = [*shared, "-o", "RequestTTY=no", *ssh.options(subject.target), "--", subject.target.address]
    return ["ssh", *way, shlex.join(command)]


def _first_line(process: subprocess.Popen[bytes]) -> bytes:
    assert process.stdout is not None
    assert process.stderr is not None
    began, line = time.monotonic(), b""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while time.monotonic() - began < START_SECONDS and not line.endswith(b"\n"):
            if selector.select(0.2):
                more = os.read(process.stdout.fileno(), 1 << 16)
                if not more:
                    break
                line += more
    if not line.endswith(b"\n"):
        process.kill()
        words = process.stderr.read().decode(errors="replace").strip().splitlines()
        raise Failure(f"no listener could be started on the host: {words[-1] if words else 'no answer'}")
    return line
