"""Loading and unloading the driver's kernel modules. Nothing is put into a kernel: what a real load would
leave behind is shown.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any

from . import pci
from .world import MARK, World, write

OURS = re.compile(r"nvidia($|[-_])")


class LoadError(Exception):
    """What modprobe would say, without the program's name before it."""


def kernels(world: World) -> list[str]:
    """Kernels that a module may come from, best first: the booted one; in a container, which shares its
    machine's kernel, the host's own installed ones, newest first, since a machine of its own would boot one
    of those.
    """
    running = os.uname().release
    directory = world.root / "lib/modules"
    if (directory / running).is_dir():
        return [running]
    if (
        not (world.root / "run/systemd/container").exists()
        and not (world.root / "run/host/container-manager").exists()
    ):
        return []
    found = [each.name for each in directory.iterdir()] if directory.is_dir() else []
    return sorted(
        found,
        key=lambda name: [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)],
        reverse=True,
    )


def find(world: World, name: str) -> tuple[str, Path] | None:
    """The kernel and file of a module, as depmod has listed it in modules.dep."""
    wanted = name.replace("-", "_")
    for kernel in kernels(world):
        listing = world.root / "lib/modules" / kernel / "modules.dep"
        for line in listing.read_text().splitlines() if listing.exists() else ():
            file = line.partition(":")[0]
            if Path(file).name.partition(".ko")[0].replace("-", "_") == wanted:
                path = world.root / "lib/modules" / kernel / file
                if path.exists():
                    return kernel, path
    return None


def modinfo(path: Path, field: str) -> str:
    """One field of a module file, which may be compressed."""
    done = subprocess.run(["modinfo", "-F", field, str(path)], capture_output=True, text=True, check=False)
    return done.stdout.strip()


def base_module(world: World) -> str | None:
    """The module that udev would load for the GPUs at boot: any whose own name is nvidia."""
    for kernel in kernels(world):
        listing = world.root / "lib/modules" / kernel / "modules.dep"
        for line in listing.read_text().splitlines() if listing.exists() else ():
            name = Path(line.partition(":")[0]).name.partition(".ko")[0]
            if re.fullmatch(r"nvidia(-current|-tesla(-\d+)?)?(-open)?", name.replace("_", "-")) and find(
                world, name
            ):
                return name
    return None


def serves(card: dict[str, Any], version: str, is_open: bool) -> str | None:
    """None where a module of this version and flavour drives the card, else why it does not."""
    branch, driver = int(version.split(".")[0]), card["driver"]
    if branch < driver["first"]:
        return "unknown"
    if branch > driver.get("last", branch):
        return "legacy"
    if driver.get("modules") == "proprietary" and is_open:
        return "needs-proprietary"
    if driver.get("modules") == "open" and not is_open:
        return "needs-open"
    return None


def load(world: World, name: str, parameters: dict[str, str] | None = None) -> None:
    """Load a module by its file's name. Raises LoadError with what modprobe would say, and PermissionError
    unless root.
    """
    found = find(world, name)
    if found is None:
        where = (kernels(world) or [os.uname().release])[0]
        raise LoadError(f"FATAL: Module {name} not found in directory /lib/modules/{where}")
    kernel, path = found
    own_name = modinfo(path, "name") or name.replace("-", "_")
    with world.changing() as state:
        if state["loaded"] and own_name in state["loaded"]["modules"]:
            return
        if own_name != "nvidia":
            if not state["loaded"]:
                raise LoadError(
                    f"ERROR: could not insert '{name.replace('-', '_')}': "
                    "Unknown symbol in module, or unknown parameter (see dmesg)"
                )
            state["loaded"]["modules"].append(own_name)
        else:
            version, is_open = modinfo(path, "version"), "GPL" in modinfo(path, "license")
            driven = _probe(world, version, is_open)
            if driven is None:
                raise LoadError(f"ERROR: could not insert '{name.replace('-', '_')}': No such device")
            state["loaded"] = {
                "version": version,
                "open": is_open,
                "kernel": kernel,
                "file": str(path),
                "modules": ["nvidia"],
                "parameters": parameters or {},
                "gpus": driven,
            }
            state.update(persistence={}, clocks={}, power={}, daemon=None)
        show(world, state["loaded"])


def _probe(world: World, version: str, is_open: bool) -> list[int] | None:
    """The GPUs a module drives, having said in the kernel's log what it would; None where it refuses to
    load.
    """
    driven, held = [], []
    for gpu in world.gpus():
        why, address = serves(world.card(gpu), version, is_open), gpu["address"]
        pci_id = f"10de:{world.card(gpu)['pci']['device']}"
        if why is None:
            driven.append(gpu["index"])
            held.append(address)
        elif why == "needs-open":
            held.append(address)
            world.log(
                f"NVRM: The NVIDIA GPU {address} (PCI ID: {pci_id})",
                "NVRM: installed in this system requires use of the NVIDIA open kernel modules.",
                f"NVRM: GPU {address}: RmInitAdapter failed! (0x22:0x56:884)",
                f"NVRM: GPU {address}: rm_init_adapter failed, device minor number {gpu['index']}",
            )
        elif why == "needs-proprietary":
            world.log(
                f"NVRM: The NVIDIA GPU {address} (PCI ID: {pci_id})",
                "NVRM: installed in this system is not supported by open",
                "NVRM: nvidia.ko because it does not include the required GPU",
                "NVRM: System Processor (GSP).",
            )
        elif why == "legacy":
            branch = world.card(gpu)["driver"]["last"]
            world.log(
                f"NVRM: The NVIDIA {gpu['model']} GPU installed in this system is",
                f"NVRM:  supported through the NVIDIA {branch}.xx Legacy drivers. Please",
                "NVRM:  visit http://www.nvidia.com/object/unix.html for more",
                f"NVRM:  information.  The {version} NVIDIA driver will ignore",
                "NVRM:  this GPU.  Continuing probe...",
            )
        else:
            world.log(
                f"NVRM: The NVIDIA GPU {address} (PCI ID: {pci_id})",
                f"NVRM: installed in this system is not supported by the NVIDIA {version} driver release.",
            )
    if not held:
        world.log("NVRM: No NVIDIA GPU found.")
        return None
    flavour = "NVIDIA UNIX Open Kernel Module for x86_64" if is_open else "NVIDIA UNIX x86_64 Kernel Module"
    world.log(
        "nvidia: loading out-of-tree module taints kernel.", f"NVRM: loading {flavour}  {version}  ({MARK})"
    )
    for address in held:
        pci.bind(world, address, "nvidia")
    return driven


def unload(world: World, name: str) -> None:
    """Take a module away. Raises LoadError with what rmmod would say."""
    own_name = re.sub(r"^nvidia_current(_open)?", "nvidia", name.replace("-", "_"))
    with world.changing() as state:
        loaded = state["loaded"]
        if not loaded or own_name not in loaded["modules"]:
            raise LoadError(f"ERROR: Module {own_name} is not currently loaded")
        others = [each for each in loaded["modules"] if each != own_name]
        if own_name == "nvidia" and others:
            raise LoadError(f"ERROR: Module nvidia is in use by: {' '.join(others)}")
        if own_name == "nvidia" and (state["daemon"] or any(state["persistence"].values())):
            raise LoadError("ERROR: Module nvidia is in use")
        loaded["modules"] = others
        if not others:
            state.update(loaded=None, persistence={}, clocks={}, power={})
            for gpu in world.gpus():
                pci.bind(world, gpu["address"], None)
        show(world, state["loaded"])


def show(world: World, loaded: dict[str, Any] | None) -> None:
    """What the kernel shows of the modules: /sys/module, /proc/modules, /proc/driver/nvidia and the device
    files.
    """
    names = loaded["modules"] if loaded else []
    sys_module = world.root / "sys/module"
    for name in names:
        users = len(names) - 1 if name == "nvidia" else 0
        for file, text in {
            "initstate": "live",
            "refcnt": str(users),
            "version": loaded["version"] if loaded else "",
            "taint": "OE",
        }.items():
            directory = sys_module / name
            directory.mkdir(parents=True, exist_ok=True)
            (directory / file).write_text(text + "\n")
    for directory in sys_module.glob("nvidia*"):
        if directory.name not in names:
            _remove(directory)
    real = world.run / "modules.real"
    # Written in place: this file lies over /proc/modules.
    (world.run / "modules").write_text(_listing(names) + (real.read_text() if real.exists() else ""))
    proc = world.root / "proc/driver/nvidia"
    if loaded:
        flavour = "Open Kernel Module for x86_64" if loaded["open"] else "x86_64 Kernel Module"
        text = f"NVRM version: NVIDIA UNIX {flavour}  {loaded['version']}  Release Build\n{MARK}\n"
        write(proc / "version", text)
        write(proc / "params", "".join(f"{key}: {value}\n" for key, value in _parameters(loaded).items()))
        for gpu in world.gpus():
            write(proc / "gpus" / gpu["address"] / "information", _information(world, gpu, loaded))
        if any(device["class"] == "068000" for device in world.machine["devices"]):
            (world.root / "proc/driver/nvidia-nvswitch/devices").mkdir(parents=True, exist_ok=True)
    else:
        _remove(proc)
    _device_files(world, loaded)


def _listing(names: list[str]) -> str:
    """Our lines of /proc/modules: the others use the base module."""
    lines = ""
    for name in reversed(names):
        users = [each for each in names if each != "nvidia"] if name == "nvidia" else []
        size = 56823808 if name == "nvidia" else 1470464
        by = "".join(f"{user}," for user in users) or "-"
        lines += f"{name} {size} {len(users)} {by} Live 0x0000000000000000 (OE)\n"
    return lines


def _parameters(loaded: dict[str, Any]) -> dict[str, str]:
    shown = {
        "ResmanDebugLevel": "4294967295",
        "ModifyDeviceFiles": "1",
        "DeviceFileUID": "0",
        "DeviceFileGID": "0",
        "DeviceFileMode": "438",
        "RmProfilingAdminOnly": "1",
        "PreserveVideoMemoryAllocations": "0",
    }
    if value := loaded["parameters"].get("NVreg_RestrictProfilingToAdminUsers"):
        shown["RmProfilingAdminOnly"] = value
    return shown


def _information(world: World, gpu: dict[str, Any], loaded: dict[str, Any]) -> str:
    vbios = world.card(gpu)["board"]["vbios"].lower() if gpu["index"] in loaded["gpus"] else "??.??.??.??.??"
    return (
        f"Model: \t\t {gpu['model']}\nIRQ:   \t\t {32 + gpu['index']}\nGPU UUID: \t {gpu['uuid']}\n"
        f"Video BIOS: \t {vbios}\nBus Type: \t PCIe\nDMA Size: \t 47 bits\nDMA Mask: \t 0x7fffffffffff\n"
        f"Bus Location: \t {gpu['address']}\nDevice Minor: \t {gpu['index']}\n"
        f"GPU Firmware: \t {loaded['version'] if loaded['open'] else 'N/A'}\nGPU Excluded:\t No\n"
    )


def _device_files(world: World, loaded: dict[str, Any] | None) -> None:
    """Placeholders for the device files: programs ask whether they are there and who may open them."""
    names = [
        "nvidiactl",
        "nvidia-uvm",
        "nvidia-uvm-tools",
        *(f"nvidia{index}" for index in (loaded["gpus"] if loaded else [])),
    ]
    for name in names if loaded else ():
        path = world.root / "dev" / name
        if not path.exists():
            path.parent.mkdir(exist_ok=True)
            path.write_text(f"{MARK}\n")
            path.chmod(0o666)
    for path in (world.root / "dev").glob("nvidia*"):
        if not loaded and path.is_file():
            path.unlink()


def _remove(directory: Path) -> None:
    """rmtree without what it asks of a file system: these lie on overlays over /sys and /proc."""
    if not directory.is_dir():
        return
    for below in directory.iterdir():
        if below.is_dir() and not below.is_symlink():
            _remove(below)
        else:
            below.unlink()
    directory.rmdir()
