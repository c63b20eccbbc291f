"""Shapes that argument specs cannot say: a variable that is either a word or a mapping, a version, a name.

Each function returns what is wrong with a value, or None.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from .administrators import wrong as administrators


def clocks(value: Any) -> str | None:
    """`none`, `max`, `base`, or {graphics: MHZ, memory: MHZ}, MHz being whole and positive."""
    if isinstance(value, str) and value in ("none", "max", "base"):
        return None
    if isinstance(value, Mapping):
        extra = sorted(set(value) - {"graphics", "memory"})
        if extra or not value:
            return (
                f"has {', '.join(map(str, extra)) or 'no clock'}; it may hold `graphics` and `memory`, in MHz"
            )
        wrong = [k for k, v in value.items() if not isinstance(v, int) or isinstance(v, bool) or v <= 0]
        return f"{wrong[0]} must be a whole number of MHz" if wrong else None
    return "must be none, max, base, or a mapping with graphics and memory in MHz"


def compute_mode(value: Any) -> str | None:
    """One of nvidia-smi's modes, or nothing at all, which a list of choices would not allow."""
    modes = ("default", "exclusive_process", "prohibited")
    return None if value is None or value in modes else f"{value!r} is none of {', '.join(modes)}"


def version(parts: str) -> Callable[[Any], str | None]:
    """A dotted version given as text; a YAML number would have lost digits (13.10 reads as 13.1)."""

    def check(value: Any) -> str | None:
        if value in (None, ""):
            return None
        if isinstance(value, float):
            return f"write it as text in quotes: YAML reads {value} as a number and drops its zeros"
        return None if re.fullmatch(parts, str(value)) else f"{value!r} is no version of the form {parts!r}"

    return check


def nccl_variables(value: Any) -> str | None:
    """A mapping of NCCL_* names to scalars."""
    if not isinstance(value, Mapping):
        return "must be a mapping of NCCL_* to value"
    for name, setting in value.items():
        if not str(name).startswith("NCCL_"):
            return f"{name} is no NCCL variable: their names begin with NCCL_"
        if isinstance(setting, Mapping | list):
            return f"{name} must be a single value"
    return None


def memlock(value: Any) -> str | None:
    """`unlimited`, or bytes as a whole number."""
    number = value if isinstance(value, int) and not isinstance(value, bool) else None
    if value == "unlimited" or (isinstance(value, str) and value.isdecimal()) or (number or 0) > 0:
        return None
    return "must be unlimited or a whole number of bytes"


def size(value: Any) -> str | None:
    """A size of memory as docker takes it: 16G, 512m, or bytes."""
    if value in (None, "") or re.fullmatch(r"[1-9]\d*(\.\d+)?\s*[kmgtKMGT]?(i?[bB])?", str(value)):
        return None
    return f"{value!r} is no size such as 16G"


SHAPES: dict[str, Callable[[Any], str | None]] = {
    "container_toolkit_default_shm_size": size,
    "container_toolkit_version": version(r"\d+\.\d+(\.\d+)?"),
    "limits_memlock": memlock,
    "gpu_settings_clocks": clocks,
    "gpu_settings_compute_mode": compute_mode,
    "nvidia_driver_version": version(r"\d+\.\d+(\.\d+)?"),
    "nccl_variables": nccl_variables,
    "ssh_hardening_admins": administrators,
}
