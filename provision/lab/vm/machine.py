"""The kind of lab host that is a virtual machine (`kinds.Kind`), run by QEMU."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import mounts, network, supervisor
from ..shell import run
from . import accelerator, command, disks, layout, qmp
from . import image as images

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ..host import LabHost
    from ..place import Place

# Emulated processors are slow: a boot takes some twenty seconds, and far longer where the machine is busy.
BOOT_LIMIT = 300.0
INTERFACE = "enp0s3"
RAISED = "allow-hotplug"  # as Debian's installer writes it
EMPTY_DISKS = 2
EMPTY_DISK_SIZE = 8 * 2**30  # bytes; a sparse file


def base(place: Place, release: str, say: Callable[[str], None]) -> Path:
    return images.ensure(place, release, say)


def lay(host: LabHost) -> None:
    system = disks.system_file(host)
    system.parent.mkdir(mode=0o755, exist_ok=True)
    run(["cp", "--sparse=always", "--reflink=auto", host.place.images / host.base, system])
    disks.begin(host, EMPTY_DISKS, EMPTY_DISK_SIZE)
    mounts.show(system, layout.ROOT_START, layout.ROOT_SIZE, host.root)


def double(host: LabHost) -> Path:
    return host.root / "var/lib/gpu-double"


def start(host: LabHost) -> None:
    clear(host)  # the file system is the guest's from here on
    network.tap(host.place, host.link)
    argv = command.line(host, accelerator.best(host.place, images.kernel_of(host.place, host.base)))
    supervisor.start(host, argv)


def clear(host: LabHost) -> None:
    mounts.clear(host.folder)
    network.drop_link(host.link)
    qmp.socket_of(host).unlink(missing_ok=True)


def leave(host: LabHost) -> None:
    """Nothing of a virtual machine serves others: its files lie inside its disks."""


def cut_power(host: LabHost) -> None:
    """Ends the machine as a power cut does: what its kernel had not written to a disk is lost.

    What had reached a disk's own cache stays: an emulated disk keeps it. `lab.up` starts the host again.
    """
    from ..machine import stop

    stop(host)
