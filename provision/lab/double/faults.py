"""Switching the faults of a lab host's double from outside, while it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import Usage
from .host import faults as host_faults
from .host.world import FAULTS

if TYPE_CHECKING:
    from pathlib import Path


def switch(state: Path, name: str, gpu: int | None = None, *, on: bool = True) -> None:
    """Switch a fault on or off in the host whose double keeps its state in `state` (LabHost.double): for one
    GPU, or for all.

    `drop` shows from the host's next boot on. Raises Usage for a fault that there is none of.
    """
    if name not in FAULTS:
        raise Usage(f"the GPU double has no fault {name!r}", do=f"known: {', '.join(FAULTS)}")
    host_faults.switch(state, name, gpu, on=on)


def clear(state: Path) -> None:
    """Switch every fault off."""
    host_faults.clear(state)
