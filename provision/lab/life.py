"""A lab host's life: claimed, made, booted, taken down; what was cut short is taken down by its record."""

from __future__ import annotations

import re
import shutil
from contextlib import ExitStack
from typing import TYPE_CHECKING

from ..errors import Failure, Usage
from . import base, cgroups, keys, kinds, machine, mounts, network, settings
from .host import LabHost, all_hosts, load
from .shell import lock
from .sources import RELEASES

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .place import Place

NAME = re.compile(r"[a-z](?:[a-z0-9-]{0,30}[a-z0-9])?")
DEFAULT_RELEASE = "bookworm"


def making(place: Place, name: str) -> Path:
    """The lock that a run holds while it makes, boots or removes a host."""
    return place.run / f"{name}.lock"


def up(
    place: Place,
    name: str | None,
    release: str | None,
    kind: str | None,
    gpus: str | None,
    say: Callable[[str], None],
) -> LabHost:
    """Makes a host and boots it, or boots again one that is off."""
    from . import double

    if release is not None and release not in RELEASES:
        raise Usage(f"no lab host has the release {release!r}", do=f"releases: {', '.join(RELEASES)}")
    if name is not None and not NAME.fullmatch(name):
        raise Usage(
            f"{name!r} is no host name", do="lower-case letters, digits, hyphens; 32 at most, a letter first"
        )
    spec = str(double.parse_gpus(gpus)) if gpus else None
    place.state.mkdir(mode=0o700, parents=True, exist_ok=True)
    known = load(place, name) if name else None
    root = None
    if known is None or not known.whole:
        root = kinds.of(kind or kinds.DEFAULT).base(place, release or DEFAULT_RELEASE, say)
        keys.lab_key(place)
    host, held = claim(place, name, release, kind, spec, root)
    with held:
        was_there = host.whole
        try:
            if not was_there:
                machine.make(host)
            machine.boot(host)
            machine.wait_for_ssh(host)
        except BaseException:
            if was_there:
                machine.stop(host)
            else:
                machine.remove(host)
            raise
    return host


def claim(
    place: Place,
    name: str | None,
    release: str | None,
    kind: str | None,
    gpus: str | None,
    root: Path | None,
) -> tuple[LabHost, ExitStack]:
    """Takes a name and an address that no other host has, on disk before anything is made.

    Returns the host and the lock on it, which the caller lets go of. A host that is off is claimed as it is.
    """
    from . import double

    with lock(place.state / "lock"), ExitStack() as held:
        place.hosts.mkdir(parents=True, exist_ok=True)
        clear_debris(place)
        there = {host.name: host for host in all_hosts(place)}
        name = name or next(x for i in range(1, 1000) if (x := f"gpu{i:02d}") not in there)
        if not held.enter_context(lock(making(place, name), wait=False)):
            raise Failure("another run is making or removing this lab host", host=name)
        if host := there.get(name):
            if host.state != "off":
                raise Failure("a lab host of this name runs", host=name, do=f"gpu-provision lab down {name}")
            asked = (release or host.release, kind or host.kind, gpus or host.gpus)
            if asked != (host.release, host.kind, host.gpus):
                raise Failure(
                    f"the lab host that is off has {host.release} and {host.gpus}, and is a {host.kind}",
                    host=name,
                    do=f"gpu-provision lab down {name}, or start it without --release, --kind and --gpus",
                )
        else:
            used = {host.number for host in there.values()}
            number = next((i for i in range(network.FIRST, network.LAST + 1) if i not in used), None)
            if number is None:
                raise Failure("the lab is full", do="gpu-provision lab down NAME")
            if root is None:
                raise Failure("another run has taken this lab host down", host=name)
            release, gpus = release or DEFAULT_RELEASE, gpus or double.DEFAULT_GPUS
            address = network.address(place, number)
            host = LabHost(place, name, release, gpus, number, address, root.name)
            host.folder.mkdir(mode=0o755)
            host.save(kind or kinds.DEFAULT)
        settings.raise_(place)
        network.up(place)
        base.forget_old(place, {host.base, *(other.base for other in there.values())})
        return host, held.pop_all()


def down(place: Place, name: str) -> None:
    """Takes one host down; the last one takes bridge, rules and raised settings with it."""
    if load(place, name) is None:
        raise Failure("there is no lab host of this name", host=name, do="gpu-provision lab list")
    with lock(making(place, name)):
        if host := load(place, name):
            machine.remove(host)
    with lock(place.state / "lock"):
        clear_debris(place)
        if not all_hosts(place):
            leave(place)


def down_all(place: Place) -> None:
    """Takes every host down, half-made ones too, and all that the lab changed on this machine."""
    if not place.state.exists():
        return
    for host in all_hosts(place):
        with lock(making(place, host.name)):
            machine.remove(host)
    with lock(place.state / "lock"):
        clear_debris(place)
        if not all_hosts(place):
            leave(place)


def leave(place: Place) -> None:
    for name in cgroups.named(f"gpu-provision-{place.bridge}-"):
        cgroups.end(name)
    mounts.clear(place.hosts)
    network.down(place)
    settings.put_back(place)
    shutil.rmtree(place.run, ignore_errors=True)


def clear_debris(place: Place) -> None:
    """Removes what runs that were killed left behind. The caller holds the lab's lock."""
    for folder in [path for path in place.hosts.glob("*") if path.is_dir()]:  # hidden ones too
        host = load(place, folder.name)
        if host is None:
            mounts.clear(folder)
            machine.delete(folder)
        elif not host.whole:
            with lock(making(place, host.name), wait=False) as free:
                if free:
                    machine.remove(host)
