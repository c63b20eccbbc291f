"""What the profile allows to be erased: disks by name, each with what it holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import data_disks_names as names
from .data_disks_model import Refused

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..profile.model import Profile
    from .data_disks_model import Disk


def allowed(profile: Profile, every: Sequence[Disk]) -> Mapping[str, str]:
    """What may be erased, by the disk's name. Raises Refused for one that is in use or not here.

    A disk that holds something else by now is not allowed any more: the permission was for what was there.
    """
    found = {}
    for raw in profile["data_disks_erase"] or ():
        name = str(raw["disk"]).removeprefix(names.BY_ID)
        disk = next((d for d in every if d.id == name or names.BY_ID + name in d.device.by_id), None)
        if disk is None:
            listed = ", ".join(d.id for d in every) or "none with a name that lasts"
            raise Refused(
                f"data_disks_erase names {name}, and there is no such disk here; there are: {listed}"
            )
        same = " ".join(str(raw["holds"]).split()) == "; ".join(disk.holds)
        if disk.in_use and same:
            raise Refused(
                f"data_disks_erase names {name}, which is in use: {'; '.join(disk.holds)}. It is left alone"
            )
        found[disk.id] = str(raw["holds"])
    return found
