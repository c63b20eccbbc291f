"""Which clocks each GPU is to be given, from the card's own list of what it supports.

Locked clocks (`nvidia-smi -lgc`, `-lmc`) where the architecture has them; application clocks (`-ac`)
only where there is nothing else: they are deprecated since CUDA 13.0 and go with CUDA 14.0
(nvidia-smi(1), NVML reference of nvmlDeviceSetApplicationsClocks).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..facts.known import Unknown
from ..yaml_text import read_yaml

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..facts.smi_model import Gpu

_DATA = Path(__file__).parent.parent / "catalog" / "data" / "clocks.yml"
NAMED = ("none", "max", "base")
_NOT_HERE = "not supported on this card"
_Mhz = tuple[int | None, int | None]
"""Graphics and memory clock; None where it is left to the driver."""


@dataclass(frozen=True)
class Setting:
    """What one GPU is given. `set` and `reset` are arguments of nvidia-smi; MHZ in `graphics` and `memory`.

    `unsupported` says why this card cannot be given all that was asked for; that is an answer, not a fault.
    """

    gpu: str
    index: int
    set: tuple[tuple[str, ...], ...] = ()
    reset: tuple[tuple[str, ...], ...] = ()
    graphics: int | None = None
    memory: int | None = None
    application: bool = False
    unsupported: str | None = None


def problem(asked: Any) -> str | None:
    """What is wrong with a value of gpu_settings_clocks, whatever the cards; None where nothing is."""
    if asked in NAMED:
        return None
    if isinstance(asked, dict) and asked and set(asked) <= {"graphics", "memory"}:
        if all(isinstance(mhz, int) and not isinstance(mhz, bool) and mhz > 0 for mhz in asked.values()):
            return None
        return "gpu_settings_clocks: graphics and memory are whole numbers of MHz"
    return f"gpu_settings_clocks is {asked!r}; it can be none, max, base, or {{graphics: MHZ, memory: MHZ}}"


def name_of(gpu: Gpu) -> str:
    """What nvidia-smi is given to mean this card, whatever its number will be in another boot."""
    return gpu.bus_id if isinstance(gpu.uuid, Unknown) else gpu.uuid


def setting(gpu: Gpu, asked: str | Mapping[str, int]) -> Setting | str:
    """The setting of one GPU for `max`, `base` or named values; a text where the card must refuse them."""
    name = name_of(gpu)
    if isinstance(gpu.architecture, Unknown):
        says = f"its architecture is not known: {gpu.architecture.reason}"
        return Setting(name, gpu.index, unsupported=says)
    supported = gpu.supported_clocks
    if isinstance(supported, Unknown) or not supported:
        return Setting(name, gpu.index, unsupported=f"{_NOT_HERE}: it lists no clocks that can be set")
    values = _values(gpu, asked, supported)
    if isinstance(values, str):
        return values
    if isinstance(values, Unknown):
        return Setting(name, gpu.index, unsupported=values.reason)
    limits = _limits()
    if gpu.architecture not in limits["no_locked_graphics"]:
        memory_too = gpu.architecture not in limits["no_locked_memory"]
        return _locked(gpu, name, values, memory_too=memory_too, top=max(supported))
    if isinstance(gpu.application_clocks.graphics, Unknown):
        return Setting(name, gpu.index, unsupported=f"{_NOT_HERE}: neither locked nor application clocks")
    graphics, memory = values
    memory = max(supported) if memory is None else memory
    graphics = max(supported[memory]) if graphics is None else graphics
    both = ("-ac", f"{memory},{graphics}")
    return Setting(name, gpu.index, (both,), (("-rac",),), graphics, memory, application=True)


def _values(
    gpu: Gpu, asked: str | Mapping[str, int], supported: Mapping[int, tuple[int, ...]]
) -> _Mhz | Unknown | str:
    top = max(supported)
    if asked == "max":
        return max(supported[top]), top
    if asked == "base":
        graphics, memory = gpu.default_application_clocks.graphics, gpu.default_application_clocks.memory
        if isinstance(graphics, Unknown) or isinstance(memory, Unknown):
            return Unknown(f"{_NOT_HERE}: the driver does not tell its base clocks; name MHz instead")
        return graphics, memory
    assert not isinstance(asked, str)
    named_memory = asked.get("memory")
    if named_memory is not None and named_memory not in supported:
        return _refusal(gpu, "memory", named_memory, tuple(supported))
    named, offered = asked.get("graphics"), supported[top if named_memory is None else named_memory]
    if named is not None and named not in offered:
        return _refusal(gpu, "graphics", named, offered)
    return named, named_memory


def _locked(gpu: Gpu, name: str, values: _Mhz, *, memory_too: bool, top: int) -> Setting:
    graphics, memory = values
    set_, reset = [], []
    if graphics is not None:
        set_.append(("-lgc", f"{graphics},{graphics}"))
        reset.append(("-rgc",))
    unsupported = None
    if memory is not None and memory_too:
        set_.append(("-lmc", f"{memory},{memory}"))
        reset.append(("-rmc",))
    elif memory is not None and memory != top:
        unsupported = f"{_NOT_HERE}: a memory clock of {memory} MHz ({gpu.architecture} has no memory lock)"
    return Setting(name, gpu.index, tuple(set_), tuple(reset), graphics, memory, unsupported=unsupported)


def _refusal(gpu: Gpu, what: str, asked: int, offered: tuple[int, ...]) -> str:
    near = sorted(sorted(offered, key=lambda mhz: abs(mhz - asked))[:2])
    model = "" if isinstance(gpu.name, Unknown) else f" ({gpu.name})"
    return (
        f"GPU {gpu.index}{model} has no {what} clock of {asked} MHz; "
        f"nearest are {' and '.join(map(str, near))}, its range is {min(offered)} to {max(offered)}."
    )


@cache
def _limits() -> dict[str, list[str]]:
    return dict(read_yaml(_DATA.read_text(encoding="utf-8")))
