"""Stands in until the GPU double is there; goes with its arrival."""
from __future__ import annotations

from types import SimpleNamespace
from typing import Any


def double() -> Any:
    from . import double as real

    if hasattr(real, "install") and hasattr(real, "nspawn_binds") and hasattr(real, "parse_gpus"):
        return real
    return SimpleNamespace(
        parse_gpus=str, DEFAULT_GPUS="A100-SXM4-80GB:2", install=lambda *a, **k: None, nspawn_binds=lambda *a: []
    )
