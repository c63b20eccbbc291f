"""Role nvidia_driver: the packages of the stack's driver, a module for each kernel, held as one set.

From NVIDIA's repository or the distribution's own archive. What is there already is adopted where it is of
the chosen source. It refuses where the host has two sources and none was named, where a driver came without
packages, where the module would not load, and where there is no card to drive.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..facts.cards_out import lost
from ..facts.known import Unknown
from ..facts.versions import same_driver
from . import driver_rpm, secure_boot
from .driver_modules import modules
from .driver_origin import strangers
from .driver_place import build_space, foreign
from .driver_place import names as names_of
from .driver_refusal import downgrade, no_card, off_the_bus, two_sources
from .driver_set import driver_set, headers
from .driver_sources import supply
from .rival_modules import MODPROBE, MODPROBE_TEXT, RIVALS, is_rival
from .wanted import File, Wanted, Why

if TYPE_CHECKING:
    from ..catalog.stack import Driver, Stack
    from ..facts import Facts
    from ..facts.kernels import InstalledKernel
    from ..facts.packages import Packages
    from ..profile.model import Profile


@dataclass(frozen=True)
class DriverWanted(Wanted):
    """`kernels` need a module; `absent` are packages of the other flavour or source, in the way.

    `first` go in before the rest, in a transaction of their own; `NAME-` goes out with them. `independent`
    are packages of the driver's whose version is their own. `exact` is True where the archive's offer is
    known and each package named with its version. `build_space` is in bytes a kernel. `load` is True where
    the module can be loaded without a reboot. `dnf` is what a host with dnf does instead of apt.
    """

    branch: int | None = None
    kernels: tuple[str, ...] = ()
    first: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    independent: tuple[str, ...] = ()
    exact: bool = False
    build_space: int = 0
    load: bool = False
    dnf: driver_rpm.Dnf | None = None


def wanted(facts: Facts, profile: Profile, stack: Stack | Unknown) -> DriverWanted:
    """Sources, packages, holds, kernels and module options, or why there can be none."""
    driver = _driver(stack)
    if isinstance(driver, str):
        return DriverWanted(refused=driver)
    assert not isinstance(stack, Unknown)
    packages = facts.packages
    if isinstance(packages, Unknown):
        return DriverWanted(refused=f"the installed packages are not known: {packages.reason}")
    kernels, load = _kernels(facts), _can_load(facts)
    refused = no_card(facts) or foreign(facts) or downgrade(packages, driver, profile)
    if refused or isinstance(kernels, str):
        return DriverWanted(refused=refused or str(kernels))
    if driver_rpm.serves(driver):
        return _by_dnf(facts, profile, stack, packages, kernels)
    others = strangers(facts, packages, driver)
    given, built = supply(facts, profile, driver), modules(facts, driver, kernels)
    refused = (
        two_sources(facts, packages, profile, driver, others)
        or given.refused
        or secure_boot.refusal(facts, signed=built.signed)
    )
    if refused:
        return DriverWanted(refused=refused)
    chosen = driver_set(facts, packages, stack, built.packages, others)
    pins = _other_pins(packages, given.first)
    whole = DriverWanted(
        files=(*given.files, File(MODPROBE, MODPROBE_TEXT)),
        keys=given.keys,
        packages=(*given.first, *headers(facts, packages, kernels), *chosen.packages),
        holds=(*given.first, *chosen.holds),
        steps=(*given.steps, *_steps(facts, driver, (*pins, *chosen.absent), load)),
        why=_why(stack),
        branch=driver.branch,
        kernels=kernels,
        first=(*given.first, *(f"{name}-" for name in pins)),
        absent=(*pins, *chosen.absent),
        independent=names_of("independent"),
        exact=chosen.exact,
        build_space=build_space(),
        load=load,
    )
    gone = lost(facts)
    if gone and _moves(whole, packages):
        return DriverWanted(refused=off_the_bus(gone))
    return whole


def _moves(whole: DriverWanted, packages: Packages) -> bool:
    """Whether any of it changes the driver, rather than what surrounds it."""
    there = {name: p.version for name, p in packages.installed.items()}
    wanted_ = [package.partition("=") for package in whole.packages]
    missing = any(name not in there or (version and there[name] != version) for name, _, version in wanted_)
    return missing or bool(whole.absent) or whole.load


def _by_dnf(
    facts: Facts, profile: Profile, stack: Stack, packages: Packages, kernels: tuple[str, ...]
) -> DriverWanted:
    """The same for RHEL and its kin, whose package manager is another."""
    assert stack.driver is not None
    given = driver_rpm.dnf(facts, profile, stack.driver, packages, kernels)
    refused = given.refused or secure_boot.refusal(facts)
    if refused:
        return DriverWanted(refused=refused)
    load = _can_load(facts)
    return DriverWanted(
        files=(*given.files, File(MODPROBE, MODPROBE_TEXT)),
        packages=given.packages,
        steps=(*given.steps, *_steps(facts, stack.driver, (), load)),
        why=_why(stack),
        branch=stack.driver.branch,
        kernels=kernels,
        build_space=build_space(),
        load=load,
        dnf=given,
    )


def _steps(facts: Facts, driver: Driver, absent: tuple[str, ...], load: bool) -> tuple[str, ...]:
    """What is done beside files, packages and holds, as long as it is still to be done."""
    assert not isinstance(facts.kernels, Unknown)
    unbuilt = [kernel.release for kernel in facts.kernels if kernel.image and not _built(kernel, driver)]
    rebuild = ["rebuild the initramfs of each kernel"] if facts.file(MODPROBE) != MODPROBE_TEXT else []
    return (
        *(f"remove {name}" for name in absent),
        *(f"build the module for kernel {release}" for release in unbuilt),
        *rebuild,
        *(["load the module"] if load else []),
    )


def _built(kernel: InstalledKernel, driver: Driver) -> bool:
    """Whether a kernel has the driver's module; any will do as long as its release is not known."""
    if kernel.nvidia_module is None:
        return False
    return driver.version is None or same_driver(kernel.nvidia_module, driver.version)


def _driver(stack: Stack | Unknown) -> Driver | str:
    """The driver to install, or why there is none."""
    if isinstance(stack, Unknown):
        return f"no matching set of versions could be chosen: {stack.reason}"
    if not stack.satisfiable:
        said = "; ".join(f"{c.says} ({c.relax})" if c.relax else c.says for c in stack.conflicts)
        return f"no set of versions satisfies this host and profile: {said}"
    return stack.driver or "the chosen set of versions has no driver"


def _other_pins(packages: Packages, first: tuple[str, ...]) -> tuple[str, ...]:
    """Pinning packages of other branches: only one can be installed."""
    found = (name for name in packages.installed if name.startswith("nvidia-driver-pinning-"))
    return tuple(sorted(name for name in found if first and name not in first))


def _kernels(facts: Facts) -> tuple[str, ...] | str:
    """Releases that can be booted, each of which needs a module."""
    if isinstance(facts.kernels, Unknown):
        return f"the installed kernels are not known: {facts.kernels.reason}"
    found = tuple(kernel.release for kernel in facts.kernels if kernel.image)
    if not found:
        return (
            "no kernel is installed here to build the module for; a container's driver belongs to its machine"
        )
    return found


def _can_load(facts: Facts) -> bool:
    """Without a reboot a module can be loaded where none is, and no rival holds a card."""
    loaded, modules, gpus = facts.loaded_driver, facts.modules_loaded, facts.nvidia_gpus_on_bus
    if isinstance(loaded, Unknown) or loaded or isinstance(modules, Unknown) or isinstance(gpus, Unknown):
        return False
    return not modules & set(RIVALS) and not any(is_rival(gpu.driver) for gpu in gpus)


def _why(stack: Stack) -> tuple[Why, ...]:
    return tuple(Why(r.about, r.says, r.source) for r in stack.reasons if r.about.startswith("driver"))
