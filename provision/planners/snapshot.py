"""Role snapshot: what of a host is kept, so that it can be put back.

Its variables say how a snapshot is taken, not what a host has to be: no control compares them with the host.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from ..facts.known import Absent, Unknown
from ..yaml_text import read_yaml
from . import (
    apt_sources,
    container_devices,
    container_sources,
    cuda,
    fabric,
    gpu_unit,
    nccl_file,
    nvidia_repository,
    rival_modules,
)
from .wanted import Wanted

if TYPE_CHECKING:
    from ..catalog.stack import Stack
    from ..facts import Facts
    from ..profile.model import Profile


@cache
def names() -> dict[str, list[str]]:
    """Files of the host's own, which no role writes, from data/snapshot.yml."""
    text = Path(__file__).with_name("data").joinpath("snapshot.yml").read_text(encoding="utf-8")
    read: dict[str, list[str]] = read_yaml(text)
    return read


_UNITS = "/etc/systemd/system/"
# Files that roles write and a way back restores. Those that decide who gets in (SSH, firewall, limits of
# logins) are not among them: putting them back has to be proven by a login, which their own roles do.
PATHS = (
    rival_modules.MODPROBE,
    apt_sources.PATH,
    nvidia_repository.SOURCE,
    nvidia_repository.KEYRING,
    nvidia_repository.PIN,
    container_sources.PATH,
    container_sources.KEY,
    gpu_unit.DROP_IN,
    gpu_unit.UNIT_FILE,
    gpu_unit.SCRIPT,
    nccl_file.PATH,
    fabric.MODULES,
    fabric.NODES,
    cuda.LINK,
    cuda.LOADER,
    cuda.LOGIN,
    cuda.SERVICES,
    *names()["alternatives"],
    container_devices.THEIR_ENV,
    *(_UNITS + unit for unit in (*container_devices.OUR_UNITS, container_devices.LINKS_UNIT)),
)
UNITS = (
    gpu_unit.CLOCKS_UNIT,
    *container_devices.OUR_UNITS,
    container_devices.LINKS_UNIT,
    gpu_unit.DAEMON,
    "nvidia-fabricmanager.service",
    fabric.IMEX_UNIT,
)


@dataclass(frozen=True)
class SnapshotWanted(Wanted):
    """`name` is the snapshot's, empty for one that is only taken where the host has none."""

    name: str = ""
    keep: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    state_of: tuple[str, ...] = ()


def wanted(facts: Facts, profile: Profile, stack: Stack | Unknown) -> SnapshotWanted:
    """What is kept. The stack plays no part."""
    packages = facts.packages
    if isinstance(packages, Unknown):
        return SnapshotWanted(refused=f"the packages are not known: {packages.reason}")
    name = profile["snapshot_name"] or ""
    if packages.manager != "dpkg":
        none = (
            "this version takes snapshots of hosts with apt alone; `--no-snapshot` goes on without a way back"
        )
        return SnapshotWanted(refused=none if name and profile["snapshot_required"] else None)
    there = facts.snapshots
    known = () if isinstance(there, Unknown | Absent) else there
    if any(each.name == name for each in known) or (known and not name):
        return SnapshotWanted()
    what = f"keep the way back as snapshot {name}" if name else "keep the way back: the first snapshot"
    if profile["snapshot_command"]:
        what += f", with that of `{profile['snapshot_command']}`"
    return SnapshotWanted(
        steps=(what,), name=name, keep=PATHS, beside=tuple(names()["beside"]), state_of=UNITS
    )
