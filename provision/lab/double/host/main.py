"""One program under many names: the double of each is chosen by the name it is called with."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from .world import World

CONTAINER = ("nvidia-ctk", "nvidia-container-runtime", "nvidia-container-runtime-hook")


def main(name: str, args: list[str]) -> int:
    """Run the double that stands in for `name`."""
    world = World()
    if name == "nvidia-smi":
        from . import smi

        return smi.main(world, args)
    if name == "nvidia-persistenced":
        from . import daemon

        return daemon.main(world, args)
    if name in CONTAINER:
        from . import container

        return {
            "nvidia-ctk": container.ctk,
            "nvidia-container-runtime": container.runtime,
            "nvidia-container-runtime-hook": container.hook,
        }[name](world, args)
    if name in ("modprobe", "rmmod", "lsmod", "dmesg"):
        from . import kmod

        return {"modprobe": kmod.modprobe, "rmmod": kmod.rmmod, "lsmod": kmod.lsmod, "dmesg": kmod.dmesg}[
            name
        ](world, args)
    if name == "after-dpkg":
        from . import sync

        return sync.after_dpkg(world)
    if name in ("boot", "notice-faults"):
        from . import boot

        (boot.boot if name == "boot" else boot.notice_faults)(world)
        return 0
    from . import control

    return control.main(world, args)


def run() -> None:
    try:
        code = main(Path(sys.argv[0]).name, sys.argv[1:])
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        code = 141
    sys.exit(code)
