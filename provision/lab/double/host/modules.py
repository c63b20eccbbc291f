"""Loading and unloading the driver's kernel modules. Nothing is put into a kernel: what a real load would
leave behind is shown.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any

from . import pci, shown
from .world import MARK, World

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
                "inforom": world.inforom(),
            }
            state.update(persistence={}, clocks={}, power={}, compute={}, mig={}, daemon=None)
        shown.show(world, state["loaded"])


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
            state.update(loaded=None, persistence={}, clocks={}, power={}, compute={}, mig={})
            for gpu in world.gpus():
                pci.bind(world, gpu["address"], None)
        shown.show(world, state["loaded"])
