"""What nvidia-smi changes: persistence, application clocks, locked clocks, power limit. Texts are those of
nvidia-smi 535 and 550.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from .gpu import DEPRECATED as GONE
from .gpu import Gpu
from .modes import Failed, Warned, compute, ecc, mig
from .nvml import DEPRECATED, INVALID, NO_PERMISSION, NOT_SUPPORTED, Refusal

if TYPE_CHECKING:
    from collections.abc import Callable


def change(gpus: list[Gpu], option: str, value: str, *, strict: bool) -> tuple[str, int]:
    """Do one modification on each GPU -> (what to print, exit code). `strict` is --error-on-warning."""
    act = ACTIONS[option]
    said, warned = "", False
    world = gpus[0].world
    if os.geteuid() != 0:
        # Nothing may be written; the GPU's own answer is that rights are missing.
        return _without_rights(gpus[0], option), NO_PERMISSION
    with world.changing() as state:
        for gpu in gpus:
            gpu.state = state
            try:
                done = act(gpu, state, value)
                said += f"{done}\n" if done else ""
            except Warned as warning:
                said += f"{warning}\nTreating as warning and moving on.\n"
                warned = True
            except Failed as failure:
                return f"{said}{failure}\nTerminating early due to previous errors.\n", failure.code
    return f"{said}All done.\n", NOT_SUPPORTED if warned and strict else 0


def _without_rights(gpu: Gpu, option: str) -> str:
    if option == "-pm":
        text = f"Unable to set persistence mode for GPU {gpu.bus_id}: Insufficient Permissions"
    elif option == "-pl":
        text = f"Failed to set power management limit for GPU {gpu.bus_id}: Insufficient Permissions"
    else:
        text = f"The current user does not have permission to change clocks for GPU {gpu.bus_id}."
    return f"{text}\nTerminating early due to previous errors.\n"


def _persistence(gpu: Gpu, state: dict[str, Any], value: str) -> str:
    on = {"1": True, "enabled": True, "0": False, "disabled": False}.get(value.lower())
    if on is None:
        raise Failed(f"Invalid persistence mode: {value}", INVALID)
    if bool(state["persistence"].get(gpu.key)) is on:
        return f"Persistence mode is already {'Enabled' if on else 'Disabled'} for GPU {gpu.bus_id}."
    state["persistence"][gpu.key] = on
    if on:
        gpu.world.log(
            "NVRM: Persistence mode is deprecated and will be removed in a future release. "
            "Please use nvidia-persistenced instead."
        )
    else:
        state["clocks"].pop(gpu.key, None)
        state["power"].pop(gpu.key, None)
    return f"{'Enabled' if on else 'Disabled'} persistence mode for GPU {gpu.bus_id}."


def _numbers(value: str, option: str, form: str, *, single: bool) -> list[int]:
    parts = value.split(",")
    if not all(part.strip().isdigit() for part in parts) or not (
        len(parts) == 2 or (single and len(parts) == 1)
    ):
        raise Failed(f'Specified clocks "{value}" are not valid. Please format input as {form}', INVALID)
    return [int(parts[0]), int(parts[-1])]


def _keep(gpu: Gpu, state: dict[str, Any], name: str, clocks: list[int]) -> str:
    """Without persistence the driver forgets the setting as soon as nvidia-smi has ended: say so, keep
    nothing.
    """
    if not gpu.persistence:
        return (
            f"Warning: persistence mode is disabled on device {gpu.bus_id}. See the Known Issues section of "
            "the nvidia-smi(1) man page for more information. Run with [--help | -h] switch to get more "
            "information on how to enable persistence mode.\n"
        )
    state["clocks"].setdefault(gpu.key, {})[name] = clocks
    return ""


def _application(gpu: Gpu, state: dict[str, Any], value: str) -> str:
    memory, graphics = _numbers(
        value, "-ac", "memClk,smClk e.g. --applications-clocks=2000,300", single=False
    )
    pair = f'"(MEM {memory}, SM {graphics})"'
    if gpu.application_clocks_deprecated:
        raise Failed(f"Unable to set applications clocks {pair} for GPU {gpu.bus_id}: {GONE}", DEPRECATED)
    if gpu.application_clocks() is None:
        raise Warned(f"Setting applications clocks is not supported for GPU {gpu.bus_id}.")
    if graphics not in gpu.graphics_clocks(memory):
        raise Failed(_no_such(f"Specified clock combination {pair}", gpu), INVALID)
    return (
        _keep(gpu, state, "application", [memory, graphics])
        + f"Applications clocks set to {pair} for GPU {gpu.bus_id}"
    )


def _no_such(what: str, gpu: Gpu) -> str:
    return (
        f"{what} is not supported for GPU {gpu.bus_id}. "
        "Run 'nvidia-smi -q -d SUPPORTED_CLOCKS' to see list of supported clock combinations"
    )


def _lock_graphics(gpu: Gpu, state: dict[str, Any], value: str) -> str:
    if not gpu.can("locked_graphics"):
        raise Warned(f"Setting locked GPU clocks is not supported for GPU {gpu.bus_id}.")
    form = (
        "'gpuClkMin,gpuClkMax' or 'gpuClkVal' e.g. '--lock-gpu-clocks=1500,1500', '--lock-gpu-clocks=1500', "
        "or '--lock-gpu-clocks=tdp,unlimited'"
    )
    top = gpu.memory_clocks[0]
    if value.replace(" ", "") == "tdp,unlimited":
        said = "(gpuClkMin tdp, gpuClkMax unlimited)"
        least, most = (gpu.card["clocks"]["default"] or {"graphics": top["max"]})["graphics"], top["max"]
    else:
        least, most = _numbers(value, "-lgc", form, single=True)
        said = f"(gpuClkMin {least}, gpuClkMax {most})"
        if least > most or least > top["max"] or most < top["min"]:
            raise Failed(_no_such(f'Specified clock combination "{said}"', gpu), INVALID)
    return (
        _keep(gpu, state, "graphics", [max(least, int(top["min"])), min(most, top["max"])])
        + f'GPU clocks set to "{said}" for GPU {gpu.bus_id}'
    )


def _lock_memory(gpu: Gpu, state: dict[str, Any], value: str) -> str:
    if not gpu.can("locked_memory"):
        raise Warned(f"Setting locked Memory clocks is not supported for GPU {gpu.bus_id}.")
    example = "--lock-memory-clocks=5100,5100 or --lock-memory-clocks=5100"
    form = f"'memClkMin,memClkMax' or 'memClkVal' e.g. {example}"
    least, most = _numbers(value, "-lmc", form, single=True)
    said = f"(memClkMin {least}, memClkMax {most})"
    inside = [span["memory"] for span in gpu.memory_clocks if least <= span["memory"] <= most]
    if least > most or not inside:
        raise Failed(_no_such(f'Specified clock combination "{said}"', gpu), INVALID)
    return (
        _keep(gpu, state, "memory", [min(inside), max(inside)])
        + f'Memory clocks set to "{said}" for GPU {gpu.bus_id}'
    )


def _reset(name: str, what: str) -> Callable[[Gpu, dict[str, Any], str], str]:
    def act(gpu: Gpu, state: dict[str, Any], value: str) -> str:
        if name == "application":
            if gpu.application_clocks_deprecated:
                raise Failed(f"Unable to reset applications clocks for GPU {gpu.bus_id}: {GONE}", DEPRECATED)
            if gpu.application_clocks() is None:
                raise Warned(f"Setting applications clocks is not supported for GPU {gpu.bus_id}.")
        elif not gpu.can(f"locked_{name}"):
            raise Warned(f"Setting locked {what} clocks is not supported for GPU {gpu.bus_id}.")
        state["clocks"].get(gpu.key, {}).pop(name, None)
        return ""

    return act


def _power(gpu: Gpu, state: dict[str, Any], value: str) -> str:
    limits = gpu.card["power"]
    try:
        watts = float(value)
    except ValueError:
        raise Refusal(
            f"ERROR: Option --power-limit= is invalid for {value}. Please run 'nvidia-smi -h' for help.\n",
            INVALID,
        ) from None
    if not limits["min"] <= watts <= limits["max"]:
        span = f"which should be between {limits['min']:.2f} W and {limits['max']:.2f} W for GPU {gpu.bus_id}"
        raise Failed(f"Provided power limit {watts:.2f} W is not a valid power limit {span}", INVALID)
    before = gpu.power_limit()
    if gpu.persistence:
        state["power"][gpu.key] = watts
    return f"Power limit for GPU {gpu.bus_id} was set to {watts:.2f} W from {before:.2f} W."


ACTIONS: dict[str, Callable[[Gpu, dict[str, Any], str], str]] = {
    "-pm": _persistence,
    "-ac": _application,
    "-rac": _reset("application", "applications"),
    "-lgc": _lock_graphics,
    "-rgc": _reset("graphics", "gpu"),
    "-lmc": _lock_memory,
    "-rmc": _reset("memory", "Memory"),
    "-pl": _power,
    "-c": compute,
    "-e": ecc,
    "-mig": mig,
}
