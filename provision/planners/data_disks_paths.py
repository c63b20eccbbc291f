"""Where a data mount may be: not over the system's folders, nor within or over what may be missing."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ..facts.known import Unknown
from .data_disks_model import Refused

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..facts import Facts
    from ..facts.mounts import FstabEntry, Mount
    from .data_disks_model import Entry

UNITS = "/etc/systemd/system/*.mount"
# Folders that the system itself lives in; what is below /var, /home, /mnt, /srv and /opt may be a disk's.
_SYSTEM = re.compile(
    r"/(?:bin|boot|dev|etc|lib\w*|proc|root|run|sbin|sys|tmp|usr)(?:/.*)?|/(?:var|home|mnt|srv|opt|media)?"
)


def check(
    entries: Sequence[Entry], facts: Facts, lines: Sequence[FstabEntry], mounts: Sequence[Mount]
) -> None:
    """Raises Refused for the first mount point that cannot be one."""
    ours = [entry.path for entry in entries]
    there = {mount.target.rstrip("/") for mount in mounts}
    for path in ours:
        if _SYSTEM.fullmatch(path):
            raise Refused(f"{path or '/'} is the system's own, and nothing is mounted over it")
        if ours.count(path) > 1:
            raise Refused(f"{path} is named twice in data_disks_mounts")
        if above := [other for other in ours if path.startswith(f"{other}/")]:
            raise Refused(
                f"{path} lies below {above[0]}, which is a data mount too and may be missing: put it beside"
            )
        gone = [
            e.target for e in lines if path.startswith(e.target.rstrip("/") + "/") and e.target.rstrip("/")
        ]
        if missing := [target for target in gone if target.rstrip("/") not in there]:
            raise Refused(
                f"{path} lies below {missing[0]}, which /etc/fstab mounts and which is not mounted now"
            )
        if below := [e.target for e in lines if e.target.rstrip("/").startswith(f"{path}/")]:
            raise Refused(f"{path} would hide {below[0]}, which /etc/fstab mounts below it")
        _units(path, facts)


def _units(path: str, facts: Facts) -> None:
    """A mount has one place where it is written down."""
    units = facts.files(UNITS)
    for file, text in {} if isinstance(units, Unknown) else units.items():
        if isinstance(text, str) and re.search(
            rf"^\s*Where\s*=\s*{re.escape(path)}/?\s*$", text, re.MULTILINE
        ):
            raise Refused(
                f"{path}: {file} mounts it already; a mount is written down once: remove one of both"
            )
