"""Lab hosts that are containers: a layer over the base root, booted by systemd-nspawn."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from . import base as bases
from . import mounts, network, packages, supervisor
from .host import all_hosts

if TYPE_CHECKING:
    from collections.abc import Callable

    from .host import LabHost
    from .place import Place

# A host takes about a second, but twenty at once on a busy machine wait for each other.
BOOT_LIMIT = 180.0
INTERFACE = "host0"
RAISED = "auto"  # a container has no udev


def base(place: Place, release: str, say: Callable[[str], None]) -> Path:
    return bases.ensure(place, release, say)


def lay(host: LabHost) -> None:
    for folder in (host.layer, host.folder / "work"):
        folder.mkdir(mode=0o755, exist_ok=True)
    for other in all_hosts(host.place):
        if other.release == host.release:
            packages.harvest(host.place.packages(host.release), other.layer)
    packages.lend(host.place.packages(host.release), host.layer)
    _mount(host)


def double(host: LabHost) -> Path:
    return host.double


def start(host: LabHost) -> None:
    from .double import nspawn_binds

    if not host.root.is_mount():
        _mount(host)
    host.place.compiler_cache.mkdir(exist_ok=True)
    nspawn = [
        "systemd-nspawn", "--quiet", "--keep-unit", "--register=no", "--boot", f"--directory={host.root}",
        f"--machine={host.machine}", f"--hostname={host.name}", f"--network-bridge={host.place.bridge}",
        "--resolv-conf=off", "--timezone=off", "--link-journal=no", "--console=read-only",
        # What docker needs in a host, beside what nspawn allows anyhow.
        "--system-call-filter=@keyring bpf",
        f"--bind={host.place.compiler_cache}:{bases.COMPILER_CACHE}",
        *nspawn_binds(host.double),
    ]  # fmt: skip
    # cgroup2 alone in the host, as Debian boots, also where this machine has the old hierarchies.
    supervisor.start(host, nspawn, {"SYSTEMD_NSPAWN_UNIFIED_HIERARCHY": "1"})


def clear(host: LabHost) -> None:
    network.drop_link(host.link)
    mounts.clear(host.folder)
    for leftover in ("propagate", "unix-export"):
        path = Path("/run/systemd/nspawn") / leftover / host.machine
        if path.is_dir():
            path.rmdir()


def leave(host: LabHost) -> None:
    packages.harvest(host.place.packages(host.release), host.layer)


def _mount(host: LabHost) -> None:
    mounts.lay(host.place.bases / host.base, host.layer, host.folder / "work", host.root)
