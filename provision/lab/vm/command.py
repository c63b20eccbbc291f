"""The command line of QEMU for one host."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import disks, qmp
from .accelerator import PROGRAM

if TYPE_CHECKING:
    from ..host import LabHost

MEMORY = 2048  # MiB
CORES = 2
PER_SLOT = 8  # functions of a PCI device: as many root ports share one


def line(host: LabHost, accelerator: str) -> list[str]:
    """QEMU with the host's disks in the order that is wanted, its link, console and control socket."""
    cpu = "host" if accelerator == "kvm" else "max"
    argv = [
        PROGRAM, "-name", host.machine, "-nodefaults", "-no-user-config", "-display", "none",
        "-machine", "q35", "-accel", accelerator, "-cpu", cpu, "-smp", str(CORES), "-m", str(MEMORY),
        "-serial", "stdio",
        "-qmp", f"unix:{qmp.socket_of(host)},server=on,wait=off",
        "-device", "virtio-rng-pci,addr=0x2",
        "-netdev", f"tap,id=net,ifname={host.link},script=no,downscript=no",
        "-device", f"virtio-net-pci,netdev=net,addr=0x3,mac={mac(host)},romfile=",
    ]  # fmt: skip
    for number in range(disks.PORTS):
        slot, function = 4 + number // PER_SLOT, number % PER_SLOT
        where = f"chassis={number + 1},addr=0x{slot:x}.{function},multifunction=on"
        argv += ["-device", f"pcie-root-port,id=port{number},{where}"]
    for each in disks.plugged(host):
        argv += ["-blockdev", disks.blockdev(host, each), "-device", disks.device(each)]
    return argv


def mac(host: LabHost) -> str:
    """A hardware address of QEMU's own range, unique on the bridge."""
    return f"52:54:00:67:70:{host.number:02x}"
