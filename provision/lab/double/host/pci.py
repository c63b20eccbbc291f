"""The PCI bus of the double, as the kernel would show it below /sys/bus/pci and /sys/class/infiniband."""

from __future__ import annotations

import os
import shutil
import struct
from typing import TYPE_CHECKING, Any

from .world import MARK, World, write

if TYPE_CHECKING:
    from pathlib import Path

Device = dict[str, Any]

RATES = {100: "EDR", 200: "HDR", 400: "NDR"}
SPEEDS = {3: "8.0 GT/s PCIe", 4: "16.0 GT/s PCIe", 5: "32.0 GT/s PCIe"}


def draw(world: World, gone: set[int]) -> None:
    """Make the tree anew below the double's run directory: `pci/tree` (devices below their bridges),
    `pci/bus` (what goes over /sys/bus/pci) and, where there are NICs, `infiniband` (what goes to
    /sys/class/infiniband).
    """
    shutil.rmtree(world.run / "pci", ignore_errors=True)
    tree, bus = world.run / "pci/tree", world.run / "pci/bus"
    for name in ("devices", "drivers", "slots"):
        (bus / name).mkdir(parents=True)
    for device in world.machine["devices"]:
        if device.get("gpu") in gone:
            continue
        directory = tree.joinpath(*device["path"])
        directory.mkdir(parents=True)
        _draw_one(world, device, directory)
        (bus / "devices" / device["address"]).symlink_to(f"/{directory.relative_to(world.root)}")
        if "driver" in device:
            bind(world, device["address"], device["driver"])
    _infiniband(world, tree)


def refresh(world: World) -> None:
    """Bring what a GPU's own files say in line with the faults switched on since they were drawn."""
    for device in world.machine["devices"]:
        directory = (world.run / "pci/tree").joinpath(*device["path"])
        if "gpu" in device and directory.is_dir():
            _draw_one(world, device, directory)


def _draw_one(world: World, device: Device, directory: Path) -> None:
    gpu = device.get("gpu")
    dead = gpu is not None and world.has_fault("off-the-bus", gpu)
    narrow = gpu is not None and world.has_fault("pcie-width", gpu)
    for name, text in _files(
        device, width=0 if dead else device.get("width", 0) // (4 if narrow else 1)
    ).items():
        (directory / name).write_text(text)
    # A device that does not answer reads as all ones.
    (directory / "config").write_bytes(b"\xff" * 256 if dead else _config(device))


def bind(world: World, address: str, driver: str | None) -> None:
    """Say which driver holds a device; None says that none does."""
    device = next(each for each in world.machine["devices"] if each["address"] == address)
    link = (world.run / "pci/tree").joinpath(*device["path"]) / "driver"
    if not link.parent.is_dir():
        return
    if link.is_symlink():
        (world.run / "pci/bus/drivers" / link.readlink().name / address).unlink(missing_ok=True)
        link.unlink()
    if driver:
        holder = world.run / "pci/bus/drivers" / driver
        holder.mkdir(exist_ok=True)
        # Relative, as the kernel's own: lspci puts it behind the device's directory.
        link.symlink_to(os.path.relpath(holder, link.parent))
        (holder / address).symlink_to(f"/sys/bus/pci/devices/{address}")


def _files(device: Device, *, width: int) -> dict[str, str]:
    vendor, product, kind = device["vendor"], device["device"], device["class"]
    sub = (device.get("subvendor", "0000"), device.get("subdevice", "0000"))
    files = {
        "vendor": f"0x{vendor}\n",
        "device": f"0x{product}\n",
        "class": f"0x{kind}\n",
        "revision": "0xa1\n",
        "subsystem_vendor": f"0x{sub[0]}\n",
        "subsystem_device": f"0x{sub[1]}\n",
        "irq": f"{32 + device['order']}\n",
        "enable": "1\n",
        "numa_node": f"{device['numa']}\n",
        "local_cpulist": f"{device['cpus']}\n",
        "label": f"{MARK}: {device['label']}\n",
        "modalias": "pci:v{:0>8}d{:0>8}sv{:0>8}sd{:0>8}".format(
            *(word.upper() for word in (vendor, product, *sub))
        )
        + f"bc{kind[:2]}sc{kind[2:4]}i{kind[4:]}\n",
        "uevent": f"PCI_CLASS={kind.lstrip('0').upper()}\nPCI_ID={vendor.upper()}:{product.upper()}\n"
        f"PCI_SLOT_NAME={device['address']}\n",
        "resource": _resources(device),
    }
    if gen := device.get("gen"):
        files.update(max_link_speed=f"{SPEEDS[gen]}\n", max_link_width=f"{device['width']}\n")
        files.update(current_link_speed=f"{SPEEDS[gen]}\n", current_link_width=f"{width}\n")
    return files


def _bars(device: Device) -> list[int]:
    """Addresses of the memory regions of an endpoint; bridges have none here."""
    if device["class"].startswith("06") and device["class"] != "068000":
        return []
    return [0xA000_0000 + device["order"] * 0x100_0000]


def _resources(device: Device) -> str:
    lines = [f"0x{start:016x} 0x{start + 0xFF_FFFF:016x} 0x0000000000040200\n" for start in _bars(device)]
    return "".join(lines + ["0x0000000000000000 0x0000000000000000 0x0000000000000000\n"] * (7 - len(lines)))


def _config(device: Device) -> bytes:
    """The 256 bytes of configuration space: a type 0 header, or a type 1 header for bridges (PCI Local Bus
    Specification, 6.1).
    """
    kind = bytes.fromhex(device["class"])
    bridge = device["class"].startswith("0604")
    header = struct.pack(
        "<HHHH",
        int(device["vendor"], 16),
        int(device["device"], 16),
        0x0406 if not bridge else 0x0407,
        0x0010,
    )
    header += bytes([0xA1, kind[2], kind[1], kind[0], 0x10, 0x00, 0x01 if bridge else 0x00, 0x00])
    if bridge:
        bus = int(device["address"][5:7], 16)
        header += bytes(8) + bytes([bus, device["secondary"], device["subordinate"], 0])
        header = header.ljust(60, b"\0")
    else:
        bars = b"".join(struct.pack("<I", bar) for bar in _bars(device))
        header = (header + bars.ljust(24, b"\0") + bytes(4)).ljust(44, b"\0")
        header += struct.pack(
            "<HH", int(device.get("subvendor", "0"), 16), int(device.get("subdevice", "0"), 16)
        )
    return header.ljust(256, b"\0")


def _infiniband(world: World, tree: Path) -> None:
    shutil.rmtree(world.run / "infiniband", ignore_errors=True)
    by_address = {device["address"]: device for device in world.machine["devices"]}
    for nic in world.machine["nics"]:
        port = world.run / "infiniband" / nic["name"]
        guid = nic["guid"]
        plain = {
            "node_type": "1: CA",
            "node_guid": guid,
            "sys_image_guid": guid,
            "node_desc": f"{MARK} {nic['name']}",
            "fw_ver": "20.43.2026",
            "ports/1/state": "4: ACTIVE",
            "ports/1/phys_state": "5: LinkUp",
            "ports/1/rate": f"{nic['rate']} Gb/sec (4X {RATES[nic['rate']]})",
            "ports/1/link_layer": "InfiniBand",
            "ports/1/lid": f"0x{int(guid[-4:], 16) % 0xBFFF + 1:x}",
            "ports/1/sm_lid": "0x1",
            "ports/1/gids/0": f"fe80:0000:0000:0000:{guid}",
            "ports/1/gid_attrs/types/0": "IB/RoCE v1",
        }
        for name, text in plain.items():
            write(port / name, text + "\n")
        device = tree.joinpath(*by_address[nic["address"]]["path"])
        (port / "device").symlink_to(f"/{device.relative_to(world.root)}")
