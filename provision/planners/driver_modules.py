"""How each kernel gets the driver's module: built by DKMS on the host, or built and signed by Ubuntu."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..facts.known import Unknown
from .driver_set import META, exact

if TYPE_CHECKING:
    from ..catalog.stack import Driver
    from ..facts import Facts

BUILT = "nvidia-dkms-"
WITH_BUILD = "nvidia-headless-"
WITHOUT_BUILD = "nvidia-headless-no-dkms-"


@dataclass(frozen=True)
class Modules:
    """The driver's own packages; `signed` where every kernel has a module that the distribution signed."""

    packages: tuple[str, ...]
    signed: bool = False


def modules(facts: Facts, driver: Driver, kernels: tuple[str, ...]) -> Modules:
    """The packages of the stack, on Ubuntu with prebuilt modules in place of DKMS where each kernel has one.

    A kernel that Ubuntu did not build has none, and then DKMS serves all: two ways on one host would build
    beside what is there.
    """
    own = exact(facts, driver)
    if driver.source != "ubuntu":
        return Modules(own)
    prebuilt = _prebuilt(facts, driver, kernels)
    if prebuilt is None:
        return Modules(own)
    kept = [package for package in own if not package.startswith((BUILT, WITH_BUILD))]
    headless = [p.replace(WITH_BUILD, WITHOUT_BUILD, 1) for p in own if p.startswith(WITH_BUILD)]
    return Modules((*headless, *kept, *prebuilt), signed=True)


def _prebuilt(facts: Facts, driver: Driver, kernels: tuple[str, ...]) -> tuple[str, ...] | None:
    """Packages with the modules of each kernel, and the meta package for the kernels to come."""
    offers = facts.policy
    if isinstance(offers, Unknown):
        return None
    flavour = "-open" if driver.modules == "open" else ""
    stem = f"linux-modules-nvidia-{driver.branch}-server{flavour}"
    each = [f"{stem}-{release}" for release in kernels]
    if not kernels or not all(name in offers and offers[name].candidate for name in each):
        return None
    metas = [f"{stem}-{flavour}" for flavour in _followed(facts)]
    return (*each, *(name for name in metas if name in offers and offers[name].candidate))


def _followed(facts: Facts) -> tuple[str, ...]:
    """The flavours of kernels that the host follows by a meta package: generic, aws, generic-hwe-24.04."""
    packages = facts.packages
    names = () if isinstance(packages, Unknown) else sorted(packages.installed)
    return tuple(found[1] for name in names if (found := META.fullmatch(name)))
