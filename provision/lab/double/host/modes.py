"""Modes that nvidia-smi sets: who may compute, ECC and MIG. Texts are those of nvidia-smi 550 as NVIDIA's MIG
User Guide shows them; where it does not, from memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .nvml import INVALID

if TYPE_CHECKING:
    from .gpu import Gpu

COMPUTE = {"0": "Default", "2": "Prohibited", "3": "Exclusive_Process"}


class Warned(Exception):
    """Not to be had on this GPU, which nvidia-smi takes for a warning."""


class Failed(Exception):
    def __init__(self, text: str, code: int) -> None:
        super().__init__(text)
        self.code = code


def compute(gpu: Gpu, state: dict[str, Any], value: str) -> str:
    by_name = {name.upper(): name for name in COMPUTE.values()}
    name = COMPUTE.get(value) or by_name.get(value.upper())
    if name is None:
        raise Failed(f"Invalid compute mode: {value}", INVALID)
    if gpu.compute_mode() == name:
        return f"Compute mode is already set to {name.upper()} for GPU {gpu.bus_id}."
    if gpu.persistence:
        state["compute"][gpu.key] = name
    return f"Set compute mode to {name.upper()} for GPU {gpu.bus_id}."


def ecc(gpu: Gpu, state: dict[str, Any], value: str) -> str:
    on, mode = _flag(value, "ECC"), gpu.ecc_mode()
    if mode is None:
        raise Warned(f"Setting ECC is not supported for GPU {gpu.bus_id}.")
    word = "Enabled" if on else "Disabled"
    if mode[1] is on:
        return f"ECC support is already {word} for GPU {gpu.bus_id}."
    gpu.world.keep(gpu.key, "ecc", on)
    return f"{word} ECC support for GPU {gpu.bus_id}.\nReboot required."


def mig(gpu: Gpu, state: dict[str, Any], value: str) -> str:
    on, mode = _flag(value, "MIG"), gpu.mig_mode()
    verb = "enable" if on else "disable"
    if mode is None:
        raise Warned(f"Unable to {verb} MIG Mode for GPU {gpu.bus_id}: Not Supported")
    if gpu.keeps_mig:
        gpu.world.keep(gpu.key, "mig", on)
        if mode[0] is not on and state["daemon"]:
            where = f"for GPU {gpu.bus_id}:In use by another client\n{gpu.bus_id}"
            return (
                f"Warning: MIG mode is in pending {verb} state {where} is currently being used by one or "
                "more other processes (e.g. CUDA application or a monitoring application such as another "
                "instance of nvidia-smi). Please first kill all processes using the device and retry the "
                "command or reboot the system to make MIG mode effective."
            )
    state["mig"][gpu.key] = on
    return f"{verb.capitalize()}d MIG Mode for GPU {gpu.bus_id}"


def _flag(value: str, what: str) -> bool:
    on = {"1": True, "enabled": True, "0": False, "disabled": False}.get(value.lower())
    if on is None:
        raise Failed(f"Invalid {what} configuration: {value}", INVALID)
    return on
