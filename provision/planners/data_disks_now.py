"""How a data mount differs from what is wanted now, in words for the plan and the control."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ..facts.known import Absent, Unknown
from ..facts.surfaces import bare

if TYPE_CHECKING:
    from ..facts import Facts
    from .data_disks_model import DataMount

CONFIGURATIONS = ("/etc/mdadm/mdadm.conf", "/etc/mdadm.conf")
# Options that the kernel shows of a mount as they were given.
SHOWN = frozenset(
    (
        "noatime",
        "nodiratime",
        "relatime",
        "strictatime",
        "ro",
        "nodev",
        "nosuid",
        "noexec",
        "discard",
        "prjquota",
    )
)


def unlike(mount: DataMount, facts: Facts) -> tuple[str, ...]:
    """What is still to be done for a mount beside making its file system and writing /etc/fstab."""
    found = []
    mounts = () if isinstance(facts.mounts, Unknown) else facts.mounts
    here = next((m for m in reversed(mounts) if m.target.rstrip("/") == mount.path), None)
    if here is None:
        found.append(f"mount {mount.path}")
    elif lacking := [o for o in mount.options if o in SHOWN and o not in here.options]:
        found.append(f"mount {mount.path} with {', '.join(lacking)}")
    if mount.array_line and not named(mount, facts):
        found.append(f"name the array /dev/md/{mount.name} in mdadm.conf and in the initramfs")
    return (*found, *_top(mount, facts, mounted=here is not None))


def named(mount: DataMount, facts: Facts) -> bool:
    """Whether a line of mdadm.conf names the array, whatever it calls it."""
    texts = [text for path in CONFIGURATIONS if isinstance(text := facts.file(path), str)]
    given = (
        u for text in texts for u in re.findall(r"^\s*ARRAY\s.*?\bUUID=(\S+)", text, re.MULTILINE | re.I)
    )
    return bare(mount.array) in map(bare, given)


def _top(mount: DataMount, facts: Facts, *, mounted: bool) -> tuple[str, ...]:
    """Owner, group and mode of the mounted file system's top folder."""
    asked = {"owner": mount.owner, "group": mount.group, "mode": mount.mode}
    wanted = {key: value for key, value in asked.items() if value is not None}
    if not wanted:
        return ()
    rooms = () if isinstance(facts.space, Unknown) else facts.space
    top = next((s for s in rooms if s.target.rstrip("/") == mount.path), None) if mounted else None
    return tuple(
        f"give {mount.path} the {key} {value}"
        for key, value in wanted.items()
        if top is None or getattr(top, key) != value
    )


def unclear(mount: DataMount, facts: Facts) -> Unknown | None:
    """What would have to be known to say that a mount is as wanted."""
    if (mount.owner or mount.group or mount.mode) and isinstance(facts.space, Unknown):
        return facts.space
    texts = [facts.file(path) for path in CONFIGURATIONS]
    blind = [text for text in texts if isinstance(text, Unknown)]
    if mount.array and blind and not any(isinstance(text, str | Absent) for text in texts):
        return blind[0]
    return None
