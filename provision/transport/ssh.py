"""SSH by OpenSSH: sessions that stay open for a run, and plain connections of their own for proofs."""

from __future__ import annotations

import hashlib
import shlex
import shutil
import tempfile
import threading
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

from ..errors import Failure, Unreached, Usage
from . import askpass, child, hostkeys
from .explain import ChangedHostKey, LoginRefused, UnknownHostKey, explain
from .options import CONNECT_SECONDS, destination, fresh_args, options

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .target import Target

__all__ = [
    "ChangedHostKey",
    "LoginRefused",
    "Session",
    "Single",
    "UnknownHostKey",
    "explain",
    "fresh_args",
    "options",
    "pinned",
]

# sun_path holds 108 bytes on Linux and 104 elsewhere, and OpenSSH adds 17 of its own while it binds.
LONGEST_PATH = 80
IDLE_SECONDS = 120
"""A master whose owner was killed ends itself after this time without a session."""


class Session:
    """One connection to a host, kept open: every command after the first costs one round trip.

    Safe for use from several threads. Commands never get a terminal. `sudo_password` is only kept
    here for who needs it; it never reaches a command line. `login_password` is given where no key gets in.
    """

    def __init__(
        self,
        target: Target,
        control_dir: Path,
        sudo_password: str | None = None,
        login_password: str | None = None,
    ) -> None:
        self.target = target
        self.sudo_password = sudo_password
        self._login_password = login_password
        self._lock = threading.Lock()
        self._open = False
        self._own_folder: Path | None = None
        name = hashlib.sha256(repr(target).encode()).hexdigest()[:10]
        path = control_dir / name
        if len(str(path).encode()) > LONGEST_PATH:
            self._own_folder = Path(tempfile.mkdtemp(prefix="gpu-", dir="/tmp"))
            path = self._own_folder / name
        self.control_path = path

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def open(self) -> None:
        """Connect and log in.

        Raises Unreached, or UnknownHostKey (a Usage) where the host's key is neither known nor allowed.
        """
        with self._lock:
            if self._open:
                return
            self.control_path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if self.target.host_key:
                self.target = pinned(self.target)
            master = ["-o", f"ControlPath={self.control_path}", "-o", f"ControlPersist={IDLE_SECONDS}"]
            arguments = ["ssh", "-M", "-N", "-f", *master, *options(self.target), *destination(self.target)]
            done = _login(arguments, self.target, self._login_password, timeout=4 * CONNECT_SECONDS)
            if done.rc != 0:
                hidden = "UNKNOWN port 65535" in done.err
                raise _why(self.target) if hidden else _explained(done, self.target, self._login_password)
            self._open = True

    def run(self, argv: Sequence[str], stdin: bytes = b"", timeout: float = 60.0) -> child.Completed:
        """Run a command on the host and wait for it, at most `timeout` seconds.

        Its own exit status is in the result. Raises Unreached where the line is lost or the time is over.
        """
        done = _ssh(self.argv(argv), self.target, stdin, timeout)
        if done.rc == 255 and not self.alive():
            self._open = False
            raise explain(done.err, self.target)
        return done

    def argv(self, command: Sequence[str]) -> list[str]:
        """The command line of an ssh that runs `command` on the host over this connection."""
        self.open()
        return [*self._shared(), *destination(self.target), shlex.join(command)]

    def alive(self) -> bool:
        """Whether the connection stands."""
        check = [*self._shared(), "-O", "check", *destination(self.target)]
        return _ssh(check, self.target, timeout=10).rc == 0

    def close(self) -> None:
        """End the connection. Safe to call twice, and where none was opened."""
        with self._lock:
            if self._open or self.control_path.exists():
                try:
                    child.run([*self._shared(), "-O", "exit", *destination(self.target)], timeout=10)
                except (child.TimedOut, OSError):
                    # The master does not answer; it ends itself after its idle time.
                    self.control_path.unlink(missing_ok=True)
                self._open = False
            if self._own_folder is not None:
                shutil.rmtree(self._own_folder, ignore_errors=True)

    def _shared(self) -> list[str]:
        ours = ["-o", f"ControlPath={self.control_path}", "-o", "ControlMaster=no", "-o", "RequestTTY=no"]
        return ["ssh", *ours, *options(self.target)]


class Single:
    """Each command on a plain connection of its own: for one command, two ssh fewer than a Session takes."""

    def __init__(
        self, target: Target, sudo_password: str | None = None, login_password: str | None = None
    ) -> None:
        self.target = target
        self.sudo_password = sudo_password
        self._login_password = login_password

    def open(self) -> None:
        """Nothing to open before the command. Raises as `pinned` does where the host's key is to be one."""
        if self.target.host_key:
            self.target = pinned(self.target)

    def run(self, argv: Sequence[str], stdin: bytes = b"", timeout: float = 60.0) -> child.Completed:
        """Connect, run a command and wait for it, at most `timeout` seconds.

        Raises Unreached, or UnknownHostKey (a Usage) where the host's key is neither known nor allowed.
        """
        self.open()
        words = [*fresh_args(self.target), shlex.join(argv)]
        done = _login(words, self.target, self._login_password, stdin, timeout)
        if done.rc == 255:
            raise _explained(done, self.target, self._login_password)
        return done

    def argv(self, command: Sequence[str]) -> list[str]:
        """The command line of an ssh that runs `command` on the host."""
        return [*fresh_args(self.target), shlex.join(command)]

    def close(self) -> None:
        """Nothing is open."""


def pinned(target: Target) -> Target:
    """The target, allowed to connect only by the key whose fingerprint `host_key` names.

    The key that the host offers is looked at before anything is sent; only an equal one is written to
    known_hosts. Raises Unreached where the host offers another, and ChangedHostKey where known_hosts has
    another one of the same kind.
    """
    wanted = (target.host_key or "").rstrip("=")
    if not wanted.startswith("SHA256:") or len(wanted) != len("SHA256:") + 43:
        raise Usage(
            f"{target.host_key!r} is no fingerprint",
            do="it is SHA256: and 43 characters, as `ssh-keygen -lf` prints it",
        )
    key, seen = hostkeys.with_fingerprint(target, wanted)
    if not seen:
        raise _why(target)
    if key is None:
        offers = ", ".join(f"{each.kind} {each.fingerprint}" for each in seen)
        raise Unreached(
            f"the host key is not the one that you gave: {wanted} is wanted, offered is {offers}",
            host=target.name,
            do="this is another machine, or somebody is in between, or the fingerprint is wrong",
        )
    old = hostkeys.recorded(target, key)
    if old is not None:
        raise ChangedHostKey(old[0], key.fingerprint, old[1], target)
    hostkeys.keep(target, key)
    algorithms = "rsa-sha2-512,rsa-sha2-256" if key.kind == "ssh-rsa" else key.kind
    return replace(target, options=(*target.options, f"HostKeyAlgorithms={algorithms}"), host_key=None)


def _login(
    arguments: list[str], target: Target, password: str | None, stdin: bytes = b"", timeout: float = 60.0
) -> child.Completed:
    """An ssh that logs in: by key, and by the password where one is given."""
    if password is None:
        return _ssh(arguments, target, stdin, timeout)
    program, *rest = arguments
    first = [word for option in askpass.OPTIONS for word in ("-o", option)]
    with askpass.answering(target, password) as env:
        return _ssh([program, *first, *rest], target, stdin, timeout, env)


def _explained(done: child.Completed, target: Target, password: str | None) -> Failure:
    failure = explain(done.err, target)
    return failure.by_password() if isinstance(failure, LoginRefused) and password is not None else failure


def _ssh(
    arguments: list[str],
    target: Target,
    stdin: bytes = b"",
    timeout: float = 60.0,
    env: Mapping[str, str] | None = None,
) -> child.Completed:
    try:
        return child.run(arguments, stdin, timeout, env)
    except child.TimedOut as e:
        raise Unreached(f"no answer within {e.seconds:g} s", host=target.name) from e
    except FileNotFoundError as e:
        raise Usage("the OpenSSH client (`ssh`) is not installed on this machine") from e
    except OSError as e:
        raise Failure(f"ssh could not be started: {e.strerror}", host=target.name) from e


def _why(target: Target) -> Failure:
    """The reason of a failure, by a plain attempt: a master hides what a ProxyJump says."""
    try:
        done = child.run([*fresh_args(target), "true"], timeout=4 * CONNECT_SECONDS)
    except child.TimedOut as e:
        return Unreached(f"no answer within {e.seconds:g} s", host=target.name)
    return explain(done.err, target)
