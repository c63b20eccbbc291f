"""The shape of a planner's answer."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class File:
    """A file that the role owns whole. `text` None means that it must not be there."""

    path: str
    text: str | None
    mode: str = "0644"
    owner: str = "root"


@dataclass(frozen=True)
class FirstLine:
    """A line that has to stand first in a file that is not ours; the rest of it stays byte for byte."""

    path: str
    first_line: str


@dataclass(frozen=True)
class Unit:
    """A systemd unit and the state wanted of it; None leaves a side alone."""

    name: str
    enabled: bool | None = None
    active: bool | None = None


@dataclass(frozen=True)
class Key:
    """A signing key that is fetched: from the first of `urls` that has one with one of the fingerprints."""

    path: str
    urls: tuple[str, ...]
    fingerprints: tuple[str, ...]


@dataclass(frozen=True)
class Why:
    """The reason for one value, with its source where a rule or number comes from somewhere."""

    about: str
    says: str
    source: str = ""


@dataclass(frozen=True)
class Check:
    """A command that has to succeed once the files are in place, and lines that it has to print."""

    command: str
    lines: tuple[str, ...] = ()


@dataclass(frozen=True)
class Wanted:
    """All that one role has to make true on one host.

    `refused` says why the role must not run here (and what to do); everything else is then empty.
    `steps` are what it does beside the rest, in words for the plan: empty where there is nothing to do.
    """

    files: tuple[File, ...] = ()
    first_lines: tuple[FirstLine, ...] = ()
    units: tuple[Unit, ...] = ()
    keys: tuple[Key, ...] = ()
    packages: tuple[str, ...] = ()
    holds: tuple[str, ...] = ()
    checks: tuple[Check, ...] = ()
    reload: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    why: tuple[Why, ...] = ()
    refused: str | None = None

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)
