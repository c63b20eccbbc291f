"""The names that NCCL reads, and those of interfaces that lead to no other host (data with sources)."""

from __future__ import annotations

from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any

from ..catalog.numbers import below
from ..yaml_text import read_yaml

_DATA = Path(__file__).parent.parent / "catalog" / "data" / "nccl_variables.yml"


@cache
def _data() -> dict[str, Any]:
    return dict(read_yaml(_DATA.read_text(encoding="utf-8")))


@cache
def variables() -> frozenset[str]:
    """All names that NCCL or one of its usual plugins reads."""
    return frozenset(_data()["nccl"]) | frozenset(_data()["hpcx"])


def unread(name: str, release: str) -> str | None:
    """Why an NCCL of this release (`2.22.3`) reads nothing of a variable; None where it reads it."""
    row = _data()["nccl"].get(name, {})
    if "since" in row and below(release, row["since"]):
        return f"NCCL {release} does not read {name} yet: it came with {row['since']}"
    if "last" in row and below(row["last"], release):
        return f"NCCL {release} reads {name} no more: {row['last']} was the last that did"
    return None


def nearest(name: str) -> str | None:
    """The real name that a misspelt one is most like; None where none is like it."""
    return next(iter(get_close_matches(name.upper(), variables(), n=1, cutoff=0.6)), None)


def between_hosts(interface: str) -> str | None:
    """What an interface is instead of a link between hosts; None where its name tells nothing."""
    prefixes: dict[str, str] = _data()["not_between_hosts"]
    return next((what for prefix, what in prefixes.items() if interface.startswith(prefix)), None)


def problem(name: str, value: Any) -> str | None:
    """What is wrong with one entry of `nccl_variables`, with the nearest right name; None if nothing."""
    if name not in variables():
        near = nearest(name)
        meant = f" Did you mean {near}?" if near else ""
        return f"nccl_variables: NCCL reads no variable {name}.{meant}"
    if not isinstance(value, str | int | float) or (isinstance(value, str) and (not value or "\n" in value)):
        return f"nccl_variables: {name} must be a number or a text of one line, not {value!r}."
    return None


def text(value: Any) -> str:
    """A value as NCCL reads it: yes and no are 1 and 0 there."""
    return str(int(value)) if isinstance(value, bool) else str(value)
