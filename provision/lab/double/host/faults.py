"""Switching faults on and off; the lab does it from outside, `gpu-double fault` on the host."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from .world import FAULTS, write

if TYPE_CHECKING:
    from pathlib import Path


def switch(kept: Path, name: str, gpu: int | None = None, *, on: bool = True) -> None:
    """Switch one fault in the double's kept directory, for one GPU or for all. Raises KeyError for a fault
    that there is none of.
    """
    if name not in FAULTS:
        raise KeyError(name)
    file = kept / "faults.json"
    faults: dict[str, list[int]] = json.loads(file.read_text()) if file.exists() else {}
    if on:
        faults[name] = sorted({*faults.get(name, []), gpu}) if gpu is not None else []
    else:
        left = [each for each in faults.pop(name, []) if gpu is not None and each != gpu]
        if left:
            faults[name] = left
    write(file, json.dumps(faults))


def clear(kept: Path) -> None:
    """Switch every fault off."""
    (kept / "faults.json").unlink(missing_ok=True)
