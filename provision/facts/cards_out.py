"""Cards that do not work by what several answers tell together: off the bus, or left out by the driver.

Whatever was not recorded tells of none: these are signs of a fault, and their absence is no health.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .known import Unknown
from .smi_trouble import DriverSilence, SmiTrouble

if TYPE_CHECKING:
    from . import Facts
    from .kernel_log import KernelLog, Refusal


def lost(facts: Facts) -> tuple[str, ...]:
    """GPUs that fell off the bus, in words: by nvidia-smi, by the kernel's log, or by the bus itself."""
    found: dict[str, str] = {}
    why, log, on_bus = facts.driver_silence, _own_log(facts), facts.nvidia_gpus_on_bus
    if isinstance(why, DriverSilence) and why.trouble is SmiTrouble.LOST:
        found |= {bus: f"{bus} is lost" for bus in why.bus_ids} or {"": why.says}
    if log is not None:
        found |= {bus: f"{bus} fell off the bus" for bus in log.fallen}
    for gpu in () if isinstance(on_bus, Unknown) else on_bus:
        if gpu.gone:
            found[gpu.address] = f"{gpu.address} no longer answers on the bus"
    return tuple(found.values())


def left_out(facts: Facts) -> dict[str, Refusal]:
    """GPUs that the driver leaves out, by the kernel's log: the reason by bus id."""
    log = _own_log(facts)
    return dict(log.left_out) if log is not None else {}


def _own_log(facts: Facts) -> KernelLog | None:
    """A container sees its machine's log, which says nothing of what it has itself."""
    log, virtualization = facts.kernel_log, facts.virtualization
    if isinstance(log, Unknown) or (not isinstance(virtualization, Unknown) and virtualization.shares_kernel):
        return None
    return log
