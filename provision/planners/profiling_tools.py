"""Role profiling_tools: what one looks for slowness with, and who may read counters."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..facts.known import Unknown
from ..yaml_text import read_yaml
from . import profiling_counters
from .wanted import Unit, Wanted, Why

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..catalog.stack import Stack
    from ..facts import Facts
    from ..profile.model import Profile

VARIABLE = "profiling_tools_install"
# Without its timers sysstat is installed and keeps nothing (Debian's package leaves them off).
COLLECTING = ("sysstat.service", "sysstat-collect.timer", "sysstat-summary.timer")
_DATA = Path(__file__).parent.parent / "catalog" / "data" / "profiling_tools.yml"


@cache
def tools() -> Mapping[str, Any]:
    """Every tool by the name that a profile gives it."""
    return dict(read_yaml(_DATA.read_text(encoding="utf-8"))["tools"])


def wanted(facts: Facts, profile: Profile, stack: Stack | Unknown) -> Wanted:
    """Packages that are not there yet, sysstat's timers, and the files that open counters where asked."""
    counters = profiling_counters.wanted(facts, profile)
    if counters.refused:
        return counters
    asked = tuple(profile[VARIABLE] or ())
    if asked and (refused := _refusal(facts)) is not None:
        return Wanted(refused=refused)
    packages: list[str] = []
    why: list[Why] = []
    for name in asked:
        row = tools()[name]
        if installed(facts, name) is not None:
            continue
        package = offered(facts, name)
        if package is None:
            says = f"{name} is left out: no archive of this host has {' or '.join(candidates(facts, name))}"
            why.append(Why(name, says, row["source"]))
        else:
            packages.append(package)
            why.append(Why(package, row["why"], row["source"]))
    units = tuple(Unit(name, True, True) for name in COLLECTING) if "sysstat" in asked else ()
    return Wanted(
        packages=tuple(packages),
        units=units,
        files=counters.files,
        reload=counters.reload,
        steps=counters.steps,
        why=(*why, *counters.why),
    )


def candidates(facts: Facts, name: str) -> tuple[str, ...]:
    """Names of packages that bring a tool on this host's system."""
    by_system = tools()[name]["packages"]
    system = "" if isinstance(facts.os, Unknown) else facts.os.id
    kernel = facts.running_kernel
    names = by_system.get(system, by_system.get("any", ()))
    return tuple(n.format(kernel=kernel) for n in names if "{kernel}" not in n or isinstance(kernel, str))


def installed(facts: Facts, name: str) -> str | None:
    """The package of a tool that is there; None where there is none."""
    packages = facts.packages
    if isinstance(packages, Unknown):
        return None
    return next((c for c in candidates(facts, name) if packages.get(c) is not None), None)


def offered(facts: Facts, name: str) -> str | None:
    """The package to install; None for an optional one that no archive is known to have."""
    policy, names = facts.policy, candidates(facts, name)
    known = {} if isinstance(policy, Unknown) else policy
    on_offer = next((c for c in names if c in known and known[c].candidate not in (None, "(none)")), None)
    if on_offer is not None or tools()[name].get("optional"):
        return on_offer
    return next(iter(names), None)


def _refusal(facts: Facts) -> str | None:
    if isinstance(facts.os, Unknown):
        return f"the host's system is not known: {facts.os.reason}"
    if facts.os.id not in ("debian", "ubuntu"):
        return f"{VARIABLE}: tools are installed with apt, and this host has {facts.os.id}"
    if isinstance(facts.packages, Unknown):
        return f"the installed packages are not known: {facts.packages.reason}"
    return None
