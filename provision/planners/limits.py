"""Role limits: what processes may lock, open and stack, and how the kernel treats memory, sockets and clocks.

Only what the profile names is set; what it no longer names, and a file of ours still sets, goes away again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from . import limits_kernel, limits_processes, limits_time
from .wanted import Wanted

if TYPE_CHECKING:
    from ..catalog.stack import Stack
    from ..facts import Facts
    from ..facts.known import Unknown
    from ..profile.model import Profile
    from .wanted import File

PARTS = (limits_processes, limits_kernel, limits_time)


def wanted(facts: Facts, profile: Profile, stack: Stack | Unknown) -> Wanted:
    """The files of all parts, the time service, and what is to be done at once beside the next boot."""
    parts = [part.wanted(facts, profile) for part in PARTS]
    refused = " ".join(part.refused for part in parts if part.refused)
    if refused:
        return Wanted(refused=refused)
    parts = [
        replace(part, files=tuple(file for file in part.files if _matters(file, facts))) for part in parts
    ]
    return Wanted(
        files=tuple(file for part in parts for file in part.files),
        units=tuple(unit for part in parts for unit in part.units),
        packages=tuple(name for part in parts for name in part.packages),
        reload=tuple(command for part in parts if part.files for command in part.reload),
        steps=tuple(step for part in parts for step in part.steps),
        why=tuple(why for part in parts for why in part.why),
    )


def _matters(file: File, facts: Facts) -> bool:
    """A file that has to go is named only where it is."""
    return file.text is not None or isinstance(facts.file(file.path), str)
