"""Coming up and failing to, as NVML does. Exit codes are NVML's (nvidia-smi(1), RETURN VALUE; 18 and 26 from
nvml.h).
"""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING

from .gpu import Gpu

if TYPE_CHECKING:
    from .world import World

NOT_FOUND, NO_PERMISSION, NOT_SUPPORTED, INVALID = 6, 4, 3, 2
NOT_LOADED, NO_LIBRARY, MISMATCH, DEPRECATED, UNKNOWN = 9, 12, 18, 26, 255


class Refusal(Exception):
    """nvidia-smi ends here, with this text on standard output and this exit code."""

    def __init__(self, text: str, code: int) -> None:
        super().__init__(text)
        self.text, self.code = text, code


def connect(world: World) -> list[Gpu]:
    """The GPUs that the loaded driver shows, in PCI order. Raises Refusal with what the real program would
    say.
    """
    library = world.userspace_version()
    if library is None:
        raise Refusal(
            "NVIDIA-SMI couldn't find libnvidia-ml.so library in your system. Please make sure that "
            "the NVIDIA Display Driver is properly installed and present in your system.\n"
            "Please also try adding directory that contains libnvidia-ml.so to your system PATH.\n",
            NO_LIBRARY,
        )
    if not world.state()["loaded"]:
        load_as_nvml_does(world)
    state = world.state()
    if not state["loaded"]:
        raise Refusal(
            "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. "
            "Make sure that the latest NVIDIA driver is installed and running.\n\n",
            NOT_LOADED,
        )
    if world.has_fault("hang"):
        hang()
    if world.has_fault("version-mismatch") or state["loaded"]["version"] != library:
        short = ".".join(library.split(".")[:2])
        raise Refusal(
            f"Failed to initialize NVML: Driver/library version mismatch\nNVML library version: {short}\n",
            MISMATCH,
        )
    if world.has_fault("unknown-error"):
        raise Refusal("Failed to initialize NVML: Unknown Error\n", UNKNOWN)
    if world.has_fault("no-permission") or not os.access(world.root / "dev/nvidiactl", os.R_OK | os.W_OK):
        raise Refusal("Failed to initialize NVML: Insufficient Permissions\n", NO_PERMISSION)
    seen = [gpu for gpu in world.gpus() if gpu["index"] in state["loaded"]["gpus"]]
    if world.has_fault("no-devices") or not seen:
        raise Refusal("No devices were found\n", NOT_FOUND)
    return [Gpu(world, gpu, state, minor) for minor, gpu in enumerate(seen)]


def need_handles(gpus: list[Gpu]) -> None:
    """A GPU that fell off the bus stops every command that goes through the GPUs."""
    for gpu in gpus:
        if gpu.fault("off-the-bus"):
            raise Refusal(
                f"Unable to determine the device handle for GPU{gpu.bus_id[4:]}: Unknown Error\n", UNKNOWN
            )


def load_as_nvml_does(world: World) -> None:
    """NVML runs nvidia-modprobe, where that is installed, before it gives up; that runs `modprobe nvidia`.

    It is setuid root; the double is not, so this does something for root alone. What modprobe says is thrown
    away, as there.
    """
    if os.geteuid() != 0 or not (world.root / "usr/bin/nvidia-modprobe").exists():
        return
    from . import kmod

    kmod.modprobe(world, ["nvidia"], silent=True)


def hang() -> None:
    """Stand still as a process in the kernel's uninterruptible sleep does: only SIGKILL ends it here, and
    nothing does there.
    """
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    while True:
        time.sleep(3600)
