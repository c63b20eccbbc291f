"""The clock: one service that keeps it, the one that is there before a new one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..facts.known import Absent, Unknown
from .wanted import Unit, Wanted, Why

if TYPE_CHECKING:
    from ..facts import Facts
    from ..profile.model import Profile

VARIABLE = "limits_time_sync"
KEEPERS = (
    "chrony.service", "chronyd.service", "ntpsec.service", "ntp.service", "systemd-timesyncd.service",
)  # fmt: skip
# These have it as a package of its own.
_HAVE_IT = ("debian", "ubuntu")
_PACKAGE, _UNIT = "systemd-timesyncd", "systemd-timesyncd.service"


def wanted(facts: Facts, profile: Profile) -> Wanted:
    """The unit that keeps the time, enabled and running; its package where there is none."""
    if not profile[VARIABLE]:
        return Wanted()
    virtualization, units = facts.virtualization, facts.units
    if not isinstance(virtualization, Unknown) and virtualization.shares_kernel:
        return Wanted(
            why=(Why("time", f"left alone: the clock is another machine's ({virtualization.kind})"),)
        )
    if isinstance(units, Unknown | Absent):
        return Wanted(refused=f"{VARIABLE}: the host's services are not known")
    there = [name for name in KEEPERS if name in units and units[name].exists]
    running = [name for name in there if units[name].runs]
    unit = next(iter(running or there), None)
    if unit is not None:
        return Wanted(units=(Unit(unit, True, True),), why=(Why("time", f"{unit} is there already"),))
    if isinstance(facts.os, Unknown) or facts.os.id not in _HAVE_IT:
        return Wanted(refused=f"{VARIABLE}: no time service is installed; install chrony")
    return Wanted(
        packages=(_PACKAGE,),
        units=(Unit(_UNIT, True, True),),
        why=(Why("time", "no other time service is installed"),),
    )
