"""A host against what a planner wants of it: packages, holds, files and units that are not so, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..facts.known import Absent, Unknown
from .model import Judged, Verdict, skipped, unknown

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..facts.packages import Packages
    from ..planners.wanted import File, Unit


def packages(installed: Packages, wanted: Iterable[str]) -> list[str]:
    """Of NAME and NAME=VERSION those that are not installed so, each with what is."""
    told = []
    for want in wanted:
        name, _, version = want.partition("=")
        package = installed.get(name)
        if package is None or (version and package.version != version):
            told.append(f"{want}: {package.version if package else 'not installed'}")
    return told


def files(host: Judged, wanted: Iterable[File], *paths: str) -> list[str]:
    """Files with another text than wanted; with `paths` only those are looked at."""
    told = []
    for file in wanted:
        if paths and file.path not in paths:
            continue
        now = host.facts.file(file.path)
        if isinstance(now, Unknown):
            told.append(f"{file.path} cannot be read: {now.reason}")
        elif file.text is None and not isinstance(now, Absent):
            told.append(f"{file.path} is there and not wanted")
        elif file.text is not None and now != file.text:
            told.append(f"{file.path} is {'missing' if isinstance(now, Absent) else 'another text'}")
    return told


def units(host: Judged, wanted: Iterable[Unit], *names: str) -> list[str] | Verdict:
    """Units in another state than wanted; with `names` only those are looked at."""
    known = host.facts.units
    if isinstance(known, Unknown):
        return unknown(known)
    if isinstance(known, Absent):
        return skipped("this host has no systemd")
    told = []
    for unit in wanted:
        if names and unit.name not in names:
            continue
        now = known.get(unit.name)
        if now is None or not now.exists:
            if unit.active or unit.enabled:
                told.append(f"{unit.name} is not there")
            continue
        if unit.active is not None and now.runs is not unit.active:
            told.append(f"{unit.name} is {now.active}")
        if unit.enabled is not None and now.starts_at_boot is not unit.enabled:
            told.append(f"{unit.name} is {now.enabled or 'not enabled'} at boot")
    return told


def holds(host: Judged, installed: Packages, wanted: Iterable[str]) -> list[str] | Verdict:
    """Installed packages of a set that apt does not hold."""
    held = host.facts.holds
    if isinstance(held, Unknown):
        return unknown(held)
    return [f"{n} is not held" for n in wanted if installed.get(n) is not None and n not in held]
