"""What data_disks plans for one mount, and the entry of the profile that it is planned from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from . import data_disks_names as names

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..facts.disks import BlockDevice
    from ..facts.surfaces import Surface
    from ..profile.model import Profile

Choice: TypeAlias = "str | int | tuple[str, ...] | Mapping[str, Any]"
LAYOUTS = ("single", "raid0", "raid1", "raid10", "lvm")
ARRAYS = ("raid0", "raid1", "raid10")
# A lost disk stops no boot, and nobody waits for it longer than this.
ALWAYS = ("noatime", "nofail", "x-systemd.device-timeout=30s")


class Refused(Exception):
    """Why a mount cannot be had on this host; the text says what to do."""


@dataclass(frozen=True)
class Entry:
    """One entry of `data_disks_mounts` with its defaults filled in."""

    path: str
    disks: Choice
    filesystem: str
    layout: str
    options: tuple[str, ...]
    owner: str | None
    group: str | None
    mode: str | None


@dataclass(frozen=True)
class Disk:
    """A disk of the host with what lies on it, under the name that lasts; `unread` is why it is not known."""

    id: str
    device: BlockDevice
    surface: Surface
    holds: tuple[str, ...]
    unread: str | None = None

    @property
    def in_use(self) -> bool:
        return any(device.mountpoints for device in self.device.walk())


@dataclass(frozen=True)
class Member:
    """A disk as the module gets it: it writes only where it finds exactly these `marks`."""

    id: str
    serial: str | None
    size: int
    holds: tuple[str, ...]
    marks: tuple[str, ...]
    volume: str = ""


@dataclass(frozen=True)
class DataMount:
    """One mount. `make` is False where its file system is there already; `resume` after a run was cut off."""

    path: str
    filesystem: str
    layout: str
    uuid: str
    options: tuple[str, ...]
    members: tuple[Member, ...]
    make: bool = False
    resume: bool = False
    label: str = ""
    name: str = ""
    array: str = ""
    owner: str | None = None
    group: str | None = None
    mode: str | None = None
    why: tuple[str, ...] = field(default=())

    @property
    def fstab_line(self) -> str:
        check = 2 if self.filesystem == "ext4" else 0
        return f"UUID={self.uuid} {self.path} {self.filesystem} {','.join(self.options)} 0 {check}"

    @property
    def array_line(self) -> str:
        """The line of mdadm.conf that gives the array its name at each boot; empty without an array."""
        return f"ARRAY /dev/md/{self.name} metadata=1.2 UUID={self.array}" if self.array else ""


def entries(profile: Profile) -> tuple[Entry, ...]:
    """The mounts that the profile names; their shape was checked before."""
    return tuple(_entry(raw) for raw in profile["data_disks_mounts"] or ())


def _entry(raw: Mapping[str, Any]) -> Entry:
    asked = raw.get("disks", "auto")
    disks = tuple(name.removeprefix(names.BY_ID) for name in asked) if isinstance(asked, list) else asked
    own = tuple(str(option) for option in raw.get("options") or ())
    # atime and its kin contradict the option that we would give.
    times = any(option in ("atime", "relatime", "strictatime", "lazytime") for option in own)
    kept = tuple(o for o in ALWAYS if not (times and o == "noatime") and _key(o) not in map(_key, own))
    mode = raw.get("mode")
    return Entry(
        str(raw["path"]).rstrip("/"),
        disks,
        raw.get("filesystem") or "xfs",
        raw.get("layout") or "single",
        (*kept, *own),
        raw.get("owner"),
        raw.get("group"),
        None if mode is None else f"{int(str(mode), 8):04o}",
    )


def _key(option: str) -> str:
    return option.partition("=")[0]
