"""Many hosts side by side, each over one connection that stays open for the run."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Self, TypeVar

from provision.access.turn import Turn
from provision.errors import Failure
from provision.transport import child, local, ssh
from provision.transport.control import ControlFolder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path
    from types import TracebackType

    from provision.transport.target import Target

    from .managed import Managed

T = TypeVar("T")
Session = ssh.Session | ssh.Single | local.Local


class Line:
    """One host and the session that leads to it."""

    def __init__(self, managed: Managed, control_dir: Path | None, *, by_password: bool = False) -> None:
        """`control_dir` is where the shared connection may lie; None for a host that is asked only once."""
        self.managed = managed
        self._by_password = by_password
        self._control_dir = control_dir
        self._turn: Turn | None = None
        self.session = self._new()

    @property
    def name(self) -> str:
        return self.managed.name

    @property
    def control_path(self) -> Path | None:
        """Where OpenSSH's shared connection lies; None where there is none."""
        return self.session.control_path if isinstance(self.session, ssh.Session) else None

    @property
    def target(self) -> Target:
        """Where the session leads; a pinned host key may have changed it from what the user named."""
        return self.managed.target if isinstance(self.session, local.Local) else self.session.target

    @property
    def login_password(self) -> str | None:
        """The password that this line may log in with where no key gets in."""
        return self.managed.secrets.login if self._by_password else None

    def accept(self, managed: Managed) -> None:
        """Go on with another way in: a key now accepted, a first contact made."""
        self.close()
        self.managed = managed
        self.session = self._new()

    def again(self) -> None:
        """A new connection, after a reboot ended the old one; and the turn again, if we had it."""
        had_turn = self._turn is not None
        self.accept(self.managed)
        if had_turn:
            self.take_turn()

    def take_turn(self) -> None:
        """Keep other runs from the host until this line is closed. Raises Failure where one is at it."""
        self._turn = Turn(self.session, self.name)

    def close(self) -> None:
        if self._turn is not None:
            self._turn.release()
            self._turn = None
        self.session.close()

    def _new(self) -> Session:
        if self.managed.target.local:
            return local.Local(self.managed.secrets.sudo)
        target, secrets = self.managed.target, self.managed.secrets
        if self._control_dir is None:
            return ssh.Single(target, secrets.sudo, self.login_password)
        return ssh.Session(target, self._control_dir, secrets.sudo, self.login_password)


class Fleet:
    """The lines to all hosts of a run. Leaving it closes every connection.

    `once`: each host is asked for one thing only, so no connection is kept open for the next. `by_password`:
    a host that no key gets into is worked with over a login with its password, where the user gave that;
    without, it has to be given our key first.
    """

    def __init__(
        self, hosts: Iterable[Managed], forks: int, *, once: bool = False, by_password: bool = False
    ) -> None:
        self._forks, self._by_password = forks, by_password
        self._folder = ControlFolder()
        place = None if once else self._folder.path
        self.lines = {host.name: Line(host, place, by_password=by_password) for host in hosts}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, e: BaseException | None, at: TracebackType | None
    ) -> None:
        self.each(lambda line: line.close())
        self._folder.close()

    def each(self, do: Callable[[Line], T], names: Iterable[str] | None = None) -> Mapping[str, T | Failure]:
        """Do something with each line (of `names`, or all) side by side; a Failure is that host's result."""
        lines = [self.lines[name] for name in (self.lines if names is None else names)]
        if not lines:
            return {}

        def one(line: Line) -> T | Failure:
            try:
                return do(line)
            except Failure as e:
                return e

        with ThreadPoolExecutor(max_workers=min(self._forks, len(lines))) as pool:
            try:
                return dict(zip([line.name for line in lines], pool.map(one, lines), strict=True))
            except BaseException:
                # Ctrl-C comes to this thread alone; the others wait for their ssh until it is ended.
                pool.shutdown(wait=False, cancel_futures=True)
                child.stop_all()
                raise

    def open(self, ask: Callable[[str], bool] | None = None) -> Mapping[str, Failure]:
        """Connect to every host; what is returned is why some could not be reached.

        `ask` is put the question where a host's key is not known and a person is there to answer.
        """
        return {name: e for name, e in self.reach(lambda line: None, ask).items() if e is not None}

    def reach(
        self, do: Callable[[Line], T], ask: Callable[[str], bool] | None = None
    ) -> Mapping[str, T | Failure]:
        """Connect to every host and do something there at once: none waits for one that is slow to answer.

        `ask` is put the question where a host's key is not known and a person is there to answer. The
        password that a host wants is asked for there, too.
        """

        def there(line: Line) -> T:
            line.session.open()
            return do(line)

        done = dict(self.each(there))
        for name, e in done.items():
            if ask and isinstance(e, ssh.UnknownHostKey) and e.key and ask(_question(name, e)):
                line = self.lines[name]
                target = replace(line.managed.target, host_key=e.key.fingerprint)
                line.accept(replace(line.managed, target=target))
                done[name] = self.each(there, [name])[name]
        for name, e in done.items():
            if isinstance(e, ssh.LoginRefused) and self._given_password(name, e) and self._by_password:
                done[name] = self.each(there, [name])[name]
        return done

    def _given_password(self, name: str, e: ssh.LoginRefused) -> bool:
        """Whether a person is there and gives the password that the host wants; it is kept with its line."""
        line = self.lines[name]
        secrets = line.managed.secrets
        if not e.takes_password or not secrets.ask:
            return False
        given = secrets.ask(f"{name} lets no key of yours in. Password of {e.user} there")
        if given:
            line.accept(replace(line.managed, target=line.target, secrets=replace(secrets, login=given)))
        return bool(given)


def _question(name: str, e: ssh.UnknownHostKey) -> str:
    assert e.key is not None
    return f"{name} is not known yet; it offers {e.key.kind} {e.key.fingerprint}. Is that its key?"
