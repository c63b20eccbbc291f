"""`gpu-double`: what the stand-in says of itself, and its faults."""

from __future__ import annotations

import sys

from . import boot, faults
from .world import FAULTS, MARK, World

USAGE = """usage: gpu-double [status]
       gpu-double fault NAME [GPU]     switch a fault on, for one GPU or for all
       gpu-double clear [NAME]         switch one fault off, or all
       gpu-double faults               what can be switched on
"""


def main(world: World, args: list[str]) -> int:
    """Exit code 2 for a call that is wrong."""
    if not args or args == ["status"]:
        return _status(world)
    if args == ["faults"]:
        print("".join(f"{name:<20} {says}\n" for name, says in FAULTS.items()), end="")
        return 0
    if args[0] == "clear" and len(args) == 1:
        faults.clear(world.kept)
    elif (
        args[0] in ("fault", "clear")
        and 2 <= len(args) <= 3
        and args[1] in FAULTS
        and (len(args) == 2 or args[2].isdigit())
    ):
        gpu = int(args[2]) if len(args) == 3 else None
        faults.switch(world.kept, args[1], gpu, on=args[0] == "fault")
    else:
        print(USAGE, end="", file=sys.stderr)
        return 2
    boot.notice_faults(world)
    return 0


def _status(world: World) -> int:
    state, on = world.state(), world.faults()
    print(f"{MARK}. What lspci, nvidia-smi, modprobe and dmesg say of GPUs on this host is made up.")
    for gpu in world.gpus():
        print(f"GPU {gpu['index']}: {gpu['model']} at {gpu['address']}")
    loaded = state["loaded"]
    if loaded:
        flavour = "open" if loaded["open"] else "proprietary"
        print(f"module: {loaded['version']}, {flavour}, built for {loaded['kernel']}")
    else:
        print("module: not loaded")
    print(f"user space: {world.userspace_version() or 'not installed'}")
    print(
        "faults: "
        + (", ".join(name + "".join(f" {gpu}" for gpu in gpus) for name, gpus in on.items()) or "none")
    )
    return 0
