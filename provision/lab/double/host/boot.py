"""What a boot brings: the PCI bus, places to show a loaded module in, and the module itself where udev would
load it.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
import subprocess
from typing import TYPE_CHECKING

from . import kmod, modules, pci
from .world import MARK, World, write

if TYPE_CHECKING:
    from pathlib import Path


def boot(world: World) -> None:
    """Draw the bus, lay it over /sys, and load the driver if it is there and not kept from loading."""
    gone = {gpu["index"] for gpu in world.machine["gpus"] if world.has_fault("drop", gpu["index"])}
    world.run.mkdir(parents=True, exist_ok=True)
    (world.run / "state.json").unlink(missing_ok=True)
    write(world.run / "dropped.json", json.dumps({"gpus": sorted(gone)}))
    (world.run / "kmsg").write_text("")
    world.log(f"gpu-double: {MARK}; only the double's lines are shown here")
    pci.draw(world, gone)
    _cover(world)
    write(world.run / "fallen.json", "[]")
    notice_faults(world)
    autoload(world)


def notice_faults(world: World) -> None:
    """Bring the bus and the kernel's log in line with the faults switched on: a GPU's fall is logged once."""
    pci.refresh(world)
    record = world.run / "fallen.json"
    before = json.loads(record.read_text()) if record.exists() else []
    fallen = [gpu["address"] for gpu in world.gpus() if world.has_fault("off-the-bus", gpu["index"])]
    for address in fallen:
        if address not in before:
            where = f"PCI:{address[:-2]}"
            world.log(
                f"NVRM: Xid ({where}): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
                f"NVRM: GPU {address}: GPU has fallen off the bus.",
            )
    write(record, json.dumps(fallen))


def autoload(world: World) -> None:
    """Load the driver as udev does for a device with a matching module, then what modules-load.d names."""
    name = modules.base_module(world)
    if name is None or not world.gpus() or kmod.blacklisted(world, "nvidia") or kmod.blacklisted(world, name):
        return
    with contextlib.suppress(modules.LoadError):
        modules.load(world, name, {**kmod.options(world, name), **kmod.options(world, "nvidia")})
    for file in sorted((world.root / "etc/modules-load.d").glob("*.conf")):
        path = world.resolve(file)
        for line in path.read_text().split("\n") if path.is_file() else ():
            if modules.OURS.match(line):
                kmod.modprobe(world, ["-b", line.strip()], silent=True)


def _cover(world: World) -> None:
    root, run = world.root, world.run
    _mount("--bind", run / "pci/bus", root / "sys/bus/pci")
    _overlay(world, "module", root / "sys/module", hide="nvidia")
    if world.machine["nics"]:
        _overlay(world, "class", root / "sys/class", hide="infiniband")
        _copy_into(run / "infiniband", root / "sys/class/infiniband")
    driver = run / "proc-driver"
    driver.mkdir(exist_ok=True)
    real = root / "proc/driver"
    for entry in real.iterdir():
        if entry.is_file() and not entry.name.startswith("nvidia"):
            with contextlib.suppress(OSError):
                (driver / entry.name).write_text(entry.read_text())
    _mount("--bind", driver, real)
    listing = root / "proc/modules"
    (run / "modules.real").write_text(
        "".join(
            line for line in listing.read_text().splitlines(True) if not modules.OURS.match(line.split()[0])
        )
        if listing.exists()
        else ""
    )
    (run / "modules").write_text((run / "modules.real").read_text())
    if listing.exists():
        _mount("--bind", run / "modules", listing)


def _overlay(world: World, name: str, over: Path, hide: str) -> None:
    """Make a directory of /sys one that can be added to; what begins with `hide` in the machine's own is not
    shown.
    """
    upper, work = world.run / name / "upper", world.run / name / "work"
    upper.mkdir(parents=True)
    work.mkdir()
    if not over.exists():
        # systemd-nspawn gives a container a small /sys of its own, which it leaves read-only and without
        # modules.
        _mount("-o", "remount,rw", over.parent)
        over.mkdir()
        _mount("-o", "remount,ro", over.parent)
        _mount("--bind", upper, over)
        return
    for entry in over.iterdir():
        if entry.name.startswith(hide):
            os.mknod(upper / entry.name, stat.S_IFCHR, os.makedev(0, 0))
    _mount("-t", "overlay", "-o", f"lowerdir={over},upperdir={upper},workdir={work}", "gpu-double", over)


def _copy_into(source: Path, target: Path) -> None:
    """Copy files and links, which shutil would do with modes and times that an overlay over /sys need not
    take.
    """
    target.mkdir(exist_ok=True)
    for entry in source.iterdir() if source.is_dir() else ():
        if entry.is_symlink():
            (target / entry.name).symlink_to(entry.readlink())
        elif entry.is_dir():
            _copy_into(entry, target / entry.name)
        else:
            (target / entry.name).write_text(entry.read_text())


def _mount(*words: object) -> None:
    subprocess.run(["mount", *(str(word) for word in words)], check=True)
