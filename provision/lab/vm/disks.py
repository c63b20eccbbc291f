"""The NVMe disks of a virtual machine: sparse files, each a controller with a serial number on its own port.

Which disks are plugged, and in which order their controllers come, is kept in a file of the host. The order
holds from the machine's next start on; a guest that restarts itself finds its controllers where they were.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from ...errors import Failure
from . import qmp

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ..host import LabHost

PORTS = 12
SYSTEM = "LABSYSTEM"
UNPLUG_LIMIT = 60.0  # seconds: a guest that boots or is busy answers late
BY_ID = "/dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_"


@dataclass(frozen=True)
class Disk:
    """One disk of a host. `port` is None while it is unplugged; ports are counted in the order of the bus."""

    serial: str
    port: int | None

    @property
    def by_id(self) -> str:
        """The name that udev gives it in the guest."""
        return BY_ID + self.serial


def system_file(host: LabHost) -> Path:
    return file(host, SYSTEM)


def file(host: LabHost, serial: str) -> Path:
    """What is on a disk, as raw bytes. Written to only while the disk is unplugged or the host is off."""
    return host.folder / "disks" / f"{serial}.raw"


def begin(host: LabHost, count: int, size: int) -> None:
    """The disks of a new host: the system's, and `count` empty ones of `size` bytes."""
    _save(host, [Disk(SYSTEM, 0)])
    for number in range(count):
        serial = f"LABDISK{number}"
        add(host, serial, size)
        _set(host, serial, number + 1)


def of(host: LabHost) -> list[Disk]:
    """All disks of a host, the plugged ones first and in the order of their ports."""
    records = [Disk(**each) for each in json.loads(_record(host).read_text())]
    return sorted(records, key=lambda each: (each.port is None, each.port))


def plugged(host: LabHost) -> list[Disk]:
    return [each for each in of(host) if each.port is not None]


def disk(host: LabHost, serial: str) -> Disk:
    """Raises Failure where the host has no such disk."""
    for each in of(host):
        if each.serial == serial:
            return each
    raise Failure(f"has no disk {serial}", host=host.name)


def add(host: LabHost, serial: str, size: int) -> Path:
    """Gives the host an empty disk, unplugged yet; returns its file, which may be filled before that."""
    if any(each.serial == serial for each in of(host)):
        raise Failure(f"has a disk {serial} already", host=host.name)
    path = file(host, serial)
    with path.open("wb") as handle:
        handle.truncate(size)
    _save(host, [*of(host), Disk(serial, None)])
    return path


def plug(host: LabHost, serial: str) -> Disk:
    """Plugs a disk into the first free port, while the host runs."""
    taken = {each.port for each in plugged(host)}
    port = next((number for number in range(PORTS) if number not in taken), None)
    if port is None or disk(host, serial).port is not None:
        raise Failure(f"no port is free for {serial}, or it is plugged", host=host.name)
    new = Disk(serial, port)
    with qmp.monitor(host) as monitor:
        monitor.do("blockdev-add", **json.loads(blockdev(host, new)))
        monitor.do("device_add", **json.loads(device(new)))
    _set(host, serial, port)
    return new


def unplug(host: LabHost, serial: str) -> None:
    """Takes a disk away from under a guest that runs, whatever it does with it; returns when it is gone.

    Raises Failure where the guest does not let go of it within a minute.
    """
    if disk(host, serial).port is None:
        raise Failure(f"disk {serial} is not plugged", host=host.name)
    with qmp.monitor(host) as monitor:
        monitor.do("device_del", id=serial)
        monitor.wait_for("DEVICE_DELETED", serial, UNPLUG_LIMIT)
        monitor.do("blockdev-del", **{"node-name": f"file-{serial}"})
    _set(host, serial, None)


def remove(host: LabHost, serial: str) -> None:
    """Takes a disk from the host for good, unplugged first where it is plugged and the host runs."""
    if disk(host, serial).port is not None and host.running:
        unplug(host, serial)
    _save(host, [each for each in of(host) if each.serial != serial])
    file(host, serial).unlink()


def order(host: LabHost) -> list[str]:
    """Serial numbers of the plugged disks, in the order of their controllers on the bus."""
    return [each.serial for each in plugged(host)]


def reorder(host: LabHost, serials: Sequence[str]) -> None:
    """Has the controllers come in this order at the next start: all of those that `order` gives."""
    if sorted(serials) != sorted(order(host)):
        raise Failure(f"{', '.join(serials)} are not the disks that are plugged", host=host.name)
    for port, serial in enumerate(serials):
        _set(host, serial, port)


def blockdev(host: LabHost, disk: Disk) -> str:
    """QEMU's word for the file. Its cache is this machine's: a power cut of the guest loses nothing of it."""
    return json.dumps(
        {
            "driver": "file", "node-name": f"file-{disk.serial}", "filename": str(file(host, disk.serial)),
            "discard": "unmap", "cache": {"direct": False, "no-flush": True},
        }
    )  # fmt: skip


def device(disk: Disk) -> str:
    """QEMU's word for the controller with its one namespace. The machine starts from the system's."""
    return json.dumps(
        {
            "driver": "nvme", "id": disk.serial, "serial": disk.serial, "drive": f"file-{disk.serial}",
            "bus": f"port{disk.port}", **({"bootindex": 0} if disk.serial == SYSTEM else {}),
        }
    )  # fmt: skip


def _set(host: LabHost, serial: str, port: int | None) -> None:
    _save(host, [Disk(serial, port) if each.serial == serial else each for each in of(host)])


def _record(host: LabHost) -> Path:
    return host.folder / "disks.json"


def _save(host: LabHost, records: Sequence[Disk]) -> None:
    half = _record(host).with_name(".disks.json")
    half.write_text(json.dumps([asdict(each) for each in records], indent=1) + "\n")
    half.replace(_record(host))
