"""Snapshots that lie on the host, as their short descriptions tell."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .known import Unknown

if TYPE_CHECKING:
    from collections.abc import Mapping

PATTERN = "/var/lib/gpu-provision/snapshots/*/about.json"
SCHEMA = "gpu-provision/snapshot/1"


@dataclass(frozen=True)
class Snapshot:
    """One snapshot. `taken` is in UTC (ISO 8601) by the host's clock, `size` in bytes, `debs` a count.

    `outside` is what a command of the user's said of a snapshot of its own, empty where there was none.
    """

    name: str
    taken: str
    why: str = ""
    size: int = 0
    debs: int = 0
    outside: Mapping[str, Any] = field(default_factory=dict)


def snapshots(texts: Mapping[str, str | Unknown] | Unknown) -> tuple[Snapshot, ...] | Unknown:
    """Oldest first. Unfinished ones, whose folder has no whole name yet, are none."""
    if isinstance(texts, Unknown):
        return texts
    found = []
    for path, text in texts.items():
        if path.removesuffix("/about.json").endswith(".new"):
            continue
        if isinstance(text, Unknown):
            return text
        try:
            about = json.loads(text)
            if about["schema"] != SCHEMA:
                return Unknown(f"{path} is of the form {about['schema']!r}", PATTERN)
            found.append(
                Snapshot(
                    name=str(about["name"]),
                    taken=str(about["taken"]),
                    why=str(about["why"]),
                    size=int(about["bytes"]),
                    debs=int(about["debs"]),
                    outside=dict(about["outside"]),
                )
            )
        except (ValueError, KeyError, TypeError) as e:
            return Unknown(f"{path} is no description of a snapshot: {e}", PATTERN)
    return tuple(sorted(found, key=lambda each: (each.taken, each.name)))


@dataclass(frozen=True)
class Kept:
    """All that a snapshot keeps, as its full document tells.

    `packages` are the versions of what was installed; `debs` names those whose .deb files are kept, and
    `files` what was at each path that a way back restores: a checksum, `-> TARGET`, or nothing.
    """

    name: str
    taken: str
    why: str
    seconds: float
    packages: Mapping[str, str]
    debs: frozenset[str]
    repacked: frozenset[str]
    holds: frozenset[str]
    files: Mapping[str, str]
    beside: Mapping[str, str]
    modules: tuple[str, ...]
    settings: tuple[str, ...] | None
    outside: Mapping[str, Any] = field(default_factory=dict)


def kept(text: str) -> Kept:
    """Read a snapshot's document. Raises ValueError where it is none."""
    try:
        found = json.loads(text)
        if found["schema"] != SCHEMA:
            raise ValueError(f"it is of the form {found['schema']!r}")
        settings = found["settings"]
        return Kept(
            name=found["name"],
            taken=found["taken"],
            why=found["why"],
            seconds=float(found["seconds"]),
            packages={
                n: p["version"] for n, p in found["packages"].items() if p["state"][1:3].strip() == "i"
            },
            debs=frozenset(found["debs"]),
            repacked=frozenset(n for n, deb in found["debs"].items() if deb["from"] == "repacked"),
            holds=frozenset(found["holds"]),
            files={path: _file(was) for path, was in found["files"].items()},
            beside={path: _file(was) for path, was in found["beside"].items()},
            modules=tuple(found["modules"]),
            settings=None if settings is None else tuple(settings),
            outside=dict(found["outside"]),
        )
    except (KeyError, TypeError, AttributeError) as e:
        raise ValueError(f"something is missing or of another form: {e}") from e


def _file(was: Mapping[str, Any]) -> str:
    return {"file": str(was.get("sha256")), "link": f"-> {was.get('target')}"}.get(str(was["kind"]), "")
