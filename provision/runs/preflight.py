"""What must hold on a host before anything is changed there; each miss is a Failure that says what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provision.converge import minimum_python
from provision.errors import Failure, Unreached, Usage
from provision.facts.known import Absent, Unknown

from .rights import without_root

if TYPE_CHECKING:
    from provision.facts import Facts

    from .look import Look


def preflight(host: str, look: Look) -> Failure | None:
    """The first reason why this host must not be converged, or None."""
    facts = look.judged.facts
    checks = (_system(facts), _systemd(facts), _python(facts), _rights(look), _room(facts))
    found = next((problem for problem in checks if problem), None)
    return type(found)(found.says, host=host, do=found.do) if found else None


def _system(facts: Facts) -> Failure | None:
    from provision.catalog.tables import catalog

    if isinstance(facts.os, Unknown):
        return Unreached(f"its operating system is unknown: {facts.os.reason}")
    if facts.os.code in catalog().distributions:
        return None
    known = ", ".join(sorted(catalog().distributions))
    return Usage(f"{facts.os.pretty or facts.os.code} is not supported", do=f"supported: {known}")


def _systemd(facts: Facts) -> Failure | None:
    if isinstance(facts.units, Absent):
        return Usage(
            "systemd does not run here, and every role needs it",
            do="a container's driver belongs to the machine that runs it: give that machine's address",
        )
    return None


def _python(facts: Facts) -> Failure | None:
    needed = minimum_python()
    if isinstance(facts.python, Unknown | Absent):
        why = facts.python.reason if isinstance(facts.python, Unknown) else "none is installed"
        return Unreached(f"no usable Python: {why}", do="install python3 there; an audit sees little without")
    if facts.python[: len(needed)] < needed:
        has, wants = (".".join(map(str, v)) for v in (facts.python, needed))
        return Unreached(
            f"it has Python {has}; Ansible needs {wants} or newer to change it",
            do="audit works all the same; to converge, install a newer Python beside it",
        )
    return None


# Bytes that must be free where every run writes, whatever its roles: modules, configuration, journals, logs.
# What packages need beside that is asked of apt before it fetches them.
ROOM = 32 * 2**20
WRITTEN = ("/etc", "/root", "/tmp", "/usr", "/var", "/var/lib")


def _room(facts: Facts) -> Failure | None:
    space = facts.space
    if isinstance(space, Unknown):
        return None  # the steps that write find out by themselves
    for folder in WRITTEN:
        places = [s for s in space if f"{folder}/".startswith(f"{s.target.rstrip('/')}/")]
        place = max(places, key=lambda s: len(s.target), default=None)
        if place and place.available < ROOM:
            free, needed = (f"{size / 1e6:.0f} MB" for size in (place.available, ROOM))
            return Failure(
                f"the disk is full: {place.target} has {free} free, and any run needs {needed}",
                do=f"`du -xh --max-depth=2 {place.target}` shows what fills it",
            )
        if place and place.inodes and place.inodes_free == 0:
            return Failure(
                f"the disk is full: {place.target} has no inode left", do="remove small files there"
            )
    return None


def _rights(look: Look) -> Failure | None:
    return None if look.recording.as_root else without_root(look.judged.facts)
