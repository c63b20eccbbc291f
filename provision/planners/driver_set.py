"""Which packages a driver's transaction brings, moves and removes, and which it holds afterwards."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..facts.known import Unknown
from ..facts.versions import driver_version, upstream
from .driver_origin import members
from .driver_place import named, names

if TYPE_CHECKING:
    from ..catalog.stack import Driver, Stack
    from ..facts import Facts
    from ..facts.packages import Package, Packages

# A kernel's meta package by flavour: linux-image-amd64, -cloud-arm64, -generic-hwe-24.04.
META = re.compile(r"linux-image-((?!unsigned|extra|uc-|debug)[a-z][\w.+-]*)")
_FABRIC = re.compile(r"nvidia-fabricmanager|nvidia-imex|libnvidia-nscq|libnvsdm")
_OF_DRIVER = re.compile(r"nvidia|^libcuda1$|^libnvcuvid1$|^libnvoptix1$")


@dataclass(frozen=True)
class DriverSet:
    """`packages` as NAME or NAME=VERSION, `absent` what is in the way, `holds` what stays together."""

    packages: tuple[str, ...]
    absent: tuple[str, ...]
    holds: tuple[str, ...]
    exact: bool


def driver_set(
    facts: Facts, packages: Packages, stack: Stack, own: tuple[str, ...], foreign: tuple[Package, ...]
) -> DriverSet:
    """The set of a stack on a host. `own` are the driver's packages, `foreign` another source's."""
    driver = stack.driver
    assert driver is not None
    wanted = (*own, *fabric(stack))
    wanted_names = {name.partition("=")[0] for name in wanted}
    in_the_way = set(_other_flavour(packages, driver, wanted_names))
    moved = []
    for package in members(packages):
        if package.name in wanted_names or package.name in in_the_way or _moves_alone(package, driver):
            continue
        # Without it no GPU of a board with switches works: it goes only for one that comes.
        if _FABRIC.match(package.name) and not fabric(stack):
            continue
        there = _offered(facts, package.name, driver)
        if there is not None and (there != package.version or package in foreign):
            moved.append(f"{package.name}={there}")
        elif (
            there is None and driver.version is not None and (package in foreign or not _at(package, driver))
        ):
            in_the_way.add(package.name)
    return DriverSet(
        packages=(*wanted, *moved),
        absent=tuple(sorted(in_the_way)),
        holds=_holds(packages, driver, wanted_names, in_the_way),
        exact=all("=" in package for package in own),
    )


def exact(facts: Facts, driver: Driver) -> tuple[str, ...]:
    """The packages as NAME=VERSION where the archive's offer, or what is installed, is known.

    Without versions apt would mix two releases where the security archive mends one flavour of the
    modules before the other, and would leave what is installed where a branch is changed.
    """
    found = []
    for want in _pinned(driver.packages, driver.pin):
        version = None if "=" in want else _offered(facts, want, driver) or _kept(facts, want, driver)
        found.append(f"{want}={version}" if version else want)
    return tuple(found)


def fabric(stack: Stack) -> tuple[str, ...]:
    """The fabric manager's packages of a host with NVSwitches: they go in with the driver or not at all."""
    part, driver = stack.fabric_manager, stack.driver
    if part is None or driver is None or part.source != driver.source:
        return ()
    return _pinned(part.packages, part.pin)


def _pinned(packages: tuple[str, ...], pins: tuple[str, ...]) -> tuple[str, ...]:
    pinned = {pin.partition("=")[0]: pin for pin in pins if "=" in pin and "*" not in pin}
    return tuple(pinned.get(name, name) for name in packages)


def headers(facts: Facts, packages: Packages, kernels: tuple[str, ...]) -> tuple[str, ...]:
    """Headers for each kernel that a package can bring, and the meta package for the kernels to come."""
    assert not isinstance(facts.kernels, Unknown)
    own = {kernel.release for kernel in facts.kernels if kernel.headers}
    each = [f"linux-headers-{release}" for release in kernels]
    wanted = [n for n in each if packages.get(n) is not None or n.removeprefix("linux-headers-") not in own]
    metas = [found[1] for name in packages.installed if (found := META.fullmatch(name))]
    return (*wanted, *(f"linux-headers-{flavour}" for flavour in sorted(metas)))


def _kept(facts: Facts, name: str, driver: Driver) -> str | None:
    """The installed version of a package where it is of the driver's release, in an archive still or not."""
    package = None if isinstance(facts.packages, Unknown) else facts.packages.get(name)
    return package.version if package is not None and _at(package, driver) else None


def _moves_alone(package: Package, driver: Driver) -> bool:
    """Debian builds some of the driver's helpers with releases of their own; NVIDIA and Ubuntu do not."""
    return driver.source == "debian" and package.name in names("independent")


def _at(package: Package, driver: Driver) -> bool:
    return driver_version(upstream(package.version)) == driver.version


def _offered(facts: Facts, name: str, driver: Driver) -> str | None:
    """The version of a package at the driver's release that its source offers; None where it has none."""
    from ..catalog.host import source_of

    policy = facts.policy
    if isinstance(policy, Unknown) or driver.version is None or name not in policy:
        return None
    family = driver.source if driver.source != "nvidia" else ""
    for version in policy[name].versions:
        here = {source_of(o, family or "other") for o in policy[name].archives(version)}
        if driver_version(upstream(version)) == driver.version and driver.source in here:
            return version
    return None


def _holds(packages: Packages, driver: Driver, wanted: set[str], in_the_way: set[str]) -> tuple[str, ...]:
    """The stack's packages and whatever else is at the driver's version: one set, or none of it moves."""
    beside = {
        name
        for name, package in packages.installed.items()
        if driver.version is not None
        and upstream(package.version) == driver.version
        and _OF_DRIVER.search(name)
    }
    return tuple(sorted({*wanted, *beside} - in_the_way))


def _other_flavour(packages: Packages, driver: Driver, wanted: set[str]) -> tuple[str, ...]:
    """Packages of the flavour that is not wanted, also those that a failed build left half-way."""
    there = {*packages.installed, *(package.name for package in packages.half_configured)}
    fits = "open" if driver.modules == "open" else "proprietary"
    return tuple(
        name
        for name in sorted(there)
        if named(name, "flavours")
        and name not in wanted
        and not (driver.source == "nvidia" and named(name, fits))
    )
