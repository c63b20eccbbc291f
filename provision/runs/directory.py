"""The run directory: what was planned, what happened, what came of it. Nobody else can read it."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from platformdirs import user_state_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from datetime import datetime
    from pathlib import Path

STATE_FILE = "state.json"


class RunDirectory:
    """One run's files below the user's state directory (`$XDG_STATE_HOME/gpu-provision/runs`)."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def new(cls, command: str, now: datetime) -> RunDirectory:
        """A fresh directory, mode 0700. Raises OSError where it cannot be made."""
        runs = _runs()
        runs.mkdir(mode=0o700, parents=True, exist_ok=True)
        stem = f"{now:%Y%m%dT%H%M%SZ}-{command}"
        for name in _candidates(stem):
            try:
                (runs / name).mkdir(mode=0o700)
            except FileExistsError:
                continue
            return cls(runs / name)
        raise AssertionError("the candidates do not end")

    @classmethod
    def newest_first(cls, command: str) -> Iterator[RunDirectory]:
        """The runs of this command that got as far as naming their hosts' states."""
        found = _runs().glob(f"*-{command}*/{STATE_FILE}") if _runs().is_dir() else ()
        return (
            cls(file.parent)
            for file in sorted(found, key=lambda file: _order(file.parent.name), reverse=True)
        )

    @property
    def states_file(self) -> Path:
        return self.path / STATE_FILE

    def write(self, name: str, document: Mapping[str, Any]) -> None:
        """A JSON file, whole or not at all: where it cannot be written, nothing of it stays."""
        file = self.path / name
        file.parent.mkdir(mode=0o700, exist_ok=True)
        fresh = file.with_suffix(".new")
        try:
            descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as out:
                json.dump(document, out, indent=1)
            fresh.replace(file)
        except BaseException:
            fresh.unlink(missing_ok=True)
            raise

    def states(self) -> Mapping[str, str]:
        """Each host's state as this run last knew it."""
        document = json.loads(self.states_file.read_text(encoding="utf-8"))
        hosts: dict[str, str] = document["hosts"]
        return hosts

    def write_states(self, states: Mapping[str, str]) -> None:
        self.write(STATE_FILE, {"hosts": dict(states)})


def _candidates(stem: str) -> Iterator[str]:
    yield stem
    number = 2
    while True:
        yield f"{stem}-{number}"
        number += 1


def last_states(command: str, hosts: Iterable[str]) -> Mapping[str, str]:
    """The state that the newest run which had a host left it in; a host that none had is missing.

    A run whose file cannot be read is passed over: an older one still says something.
    """
    wanted, found = set(hosts), dict[str, str]()
    for run in RunDirectory.newest_first(command):
        if not wanted:
            break
        try:
            states = run.states()
        except (OSError, ValueError, KeyError):
            continue
        known = wanted.intersection(states)
        found |= {host: states[host] for host in known}
        wanted -= known
    return found


def _order(name: str) -> tuple[str, int]:
    """Runs of one second are numbered from the second on: `…-bootstrap`, `…-bootstrap-2`, … `-10`."""
    stem, _, number = name.rpartition("-")
    return (stem, int(number)) if number.isdigit() else (name, 1)


def _runs() -> Path:
    return user_state_path("gpu-provision") / "runs"


def file_name(host: str) -> str:
    """A host's name as part of a file name; addresses may hold characters that a path must not."""
    return "".join(c if c.isalnum() or c in "-._@" else "_" for c in host)
