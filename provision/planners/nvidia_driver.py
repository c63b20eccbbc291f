"""Role nvidia_driver: the packages of the stack's driver, a module for each kernel, held as one set.

This version installs from Debian's own archive. From any other source it refuses and says so; it
also refuses where a driver of another making is on the host, where the module would not load, and
where there is no card to drive.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..facts.cards_out import lost
from ..facts.known import Unknown
from ..facts.versions import driver_tuple, same_driver, upstream
from . import apt_sources
from .driver_place import build_space, foreign, named, secure_boot_refusal
from .driver_place import names as names_of
from .wanted import File, Wanted, Why

if TYPE_CHECKING:
    from ..catalog.stack import Driver, Stack
    from ..facts import Facts
    from ..facts.kernels import InstalledKernel
    from ..facts.packages import Packages
    from ..profile.model import Profile

MODPROBE = "/etc/modprobe.d/gpu-provision.conf"
RIVALS = ("nouveau", "nova_core")
MODPROBE_TEXT = """\
# Written by gpu-provision (role nvidia_driver): these would take the GPUs before the NVIDIA driver.
blacklist nouveau
blacklist nova_core
"""
# A kernel's meta package by flavour: linux-image-amd64, linux-image-cloud-arm64.
_META = re.compile(r"linux-image-((?:cloud-|rt-)?(?:amd64|arm64))")
_OF_DRIVER = re.compile(r"nvidia|^libcuda1$|^libnvcuvid1$|^libnvoptix1$")


@dataclass(frozen=True)
class DriverWanted(Wanted):
    """`kernels` need a module; `absent` are packages of the other flavour, in the way.

    `independent` are packages of the driver's whose version is their own. `exact` is True where the
    archive's offer is known and each package named with its version. `build_space` is in bytes a kernel.
    `load` is True where the module can be loaded without a reboot.
    """

    branch: int | None = None
    kernels: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    independent: tuple[str, ...] = ()
    exact: bool = False
    build_space: int = 0
    load: bool = False


def wanted(facts: Facts, profile: Profile, stack: Stack | Unknown) -> DriverWanted:
    """Sources, packages, holds, kernels and module options, or why there can be none."""
    driver = _driver(stack)
    if isinstance(driver, str):
        return DriverWanted(refused=driver)
    archive = apt_sources.archive(facts)
    packages = facts.packages
    if isinstance(packages, Unknown):
        return DriverWanted(refused=f"the installed packages are not known: {packages.reason}")
    refused = (
        _no_card(facts)
        or foreign(facts, driver.branch)
        or _downgrade(packages, driver, profile)
        or archive.refused
        or secure_boot_refusal(facts)
    )
    kernels = _kernels(facts)
    if refused or isinstance(kernels, str):
        return DriverWanted(refused=refused or str(kernels))
    names = driver.packages
    absent, load = _other_flavour(packages, names), _can_load(facts)
    whole = DriverWanted(
        files=(File(apt_sources.PATH, archive.text), File(MODPROBE, MODPROBE_TEXT)),
        packages=(*_headers(facts, packages, kernels), *exact(driver)),
        holds=_holds(packages, driver, names),
        steps=_steps(facts, driver, absent, load),
        why=_why(stack),
        branch=driver.branch,
        kernels=kernels,
        absent=absent,
        independent=names_of("independent"),
        exact=all("=" in package for package in exact(driver)),
        build_space=build_space(),
        load=load,
    )
    gone = lost(facts)
    if gone and _moves(whole, packages):
        return DriverWanted(refused=_off_the_bus(gone))
    return whole


def _moves(whole: DriverWanted, packages: Packages) -> bool:
    """Whether any of it changes the driver, rather than what surrounds it."""
    there = {name: p.version for name, p in packages.installed.items()}
    wanted_ = [package.partition("=") for package in whole.packages]
    missing = any(name not in there or (version and there[name] != version) for name, _, version in wanted_)
    return missing or bool(whole.absent) or whole.load


def _off_the_bus(gone: tuple[str, ...]) -> str:
    return (
        f"a GPU of this host is off the bus ({'; '.join(gone[:4])}): with another driver nobody could tell "
        "its fault from the driver's. Reboot; if it comes back lost, look at power, cooling and seating, "
        "then change the driver"
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


def exact(driver: Driver) -> tuple[str, ...]:
    """The packages as NAME=VERSION where the archive's offer is known.

    Without versions apt would mix two releases where the security archive mends one flavour of the
    modules before the other.
    """
    pinned = {pin.partition("=")[0]: pin for pin in driver.pin if "=" in pin and "*" not in pin}
    return tuple(pinned.get(name, name) for name in driver.packages)


def _driver(stack: Stack | Unknown) -> Driver | str:
    """The driver to install, or why there is none."""
    if isinstance(stack, Unknown):
        return f"no matching set of versions could be chosen: {stack.reason}"
    if not stack.satisfiable:
        said = "; ".join(f"{c.says} ({c.relax})" if c.relax else c.says for c in stack.conflicts)
        return f"no set of versions satisfies this host and profile: {said}"
    if stack.driver is None:
        return "the chosen set of versions has no driver"
    if stack.driver.source != "debian":
        return (
            f"the driver would come from {stack.driver.source!r}, and this version installs from Debian's "
            "archive only: set nvidia_driver_source: debian (a preset, or --set nvidia_driver_source=debian)"
        )
    return stack.driver


def _no_card(facts: Facts) -> str | None:
    gpus = facts.nvidia_gpus_on_bus
    if isinstance(gpus, Unknown):
        return f"the devices on the bus are not known: {gpus.reason}"
    if not gpus:
        return "there is no NVIDIA GPU on this host's bus"
    if all(gpu.passed_through for gpu in gpus):
        return f"all GPUs of this host are given to virtual machines ({gpus[0].driver}); they are left alone"
    return None


def _downgrade(packages: Packages, driver: Driver, profile: Profile) -> str | None:
    """Going back to an older driver is done only where the profile names it."""
    main = packages.get(driver.main)
    if main is None or driver.version is None:
        return None
    now, then = driver_tuple(main.version), driver_tuple(driver.version)
    if now is None or then is None or then >= now:
        return None
    named = (profile["nvidia_driver_version"], profile["nvidia_driver_branch"])
    if any(named) or profile["nvidia_driver_modules"] != "auto":
        return None
    return (
        f"driver {main.version} is installed and {driver.version} would be older; name it by "
        "nvidia_driver_version or nvidia_driver_branch to go back"
    )


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


def _headers(facts: Facts, packages: Packages, kernels: tuple[str, ...]) -> tuple[str, ...]:
    """Headers for each kernel that a package can bring, and the meta package for the kernels to come."""
    assert not isinstance(facts.kernels, Unknown)
    own = {kernel.release for kernel in facts.kernels if kernel.headers}
    names = [f"linux-headers-{release}" for release in kernels]
    wanted_ = [n for n in names if packages.get(n) is not None or n.removeprefix("linux-headers-") not in own]
    metas = [found[1] for name in packages.installed if (found := _META.fullmatch(name))]
    return (*wanted_, *(f"linux-headers-{flavour}" for flavour in sorted(metas)))


def _holds(packages: Packages, driver: Driver, names: tuple[str, ...]) -> tuple[str, ...]:
    """The stack's packages and whatever else is at the driver's version: one set, or none of it moves."""
    beside = {
        name
        for name, package in packages.installed.items()
        if driver.version is not None
        and upstream(package.version) == driver.version
        and _OF_DRIVER.search(name)
    }
    return tuple(sorted({*names, *beside}))


def _other_flavour(packages: Packages, names: tuple[str, ...]) -> tuple[str, ...]:
    """Packages of the flavour that is not wanted, also those that a failed build left half-way."""
    there = {*packages.installed, *(package.name for package in packages.half_configured)}
    return tuple(name for name in sorted(there) if named(name, "flavours") and name not in names)


def _can_load(facts: Facts) -> bool:
    """Without a reboot a module can be loaded where none is, and no rival holds a card."""
    loaded, modules, gpus = facts.loaded_driver, facts.modules_loaded, facts.nvidia_gpus_on_bus
    if isinstance(loaded, Unknown) or loaded or isinstance(modules, Unknown) or isinstance(gpus, Unknown):
        return False
    return not modules & set(RIVALS) and not any(is_rival(gpu.driver) for gpu in gpus)


def is_rival(driver: str | None) -> bool:
    """Whether a kernel driver is one that takes GPUs from NVIDIA's; vfio-pci is a choice, not a rival."""
    return (driver or "").lower().replace("_", "").replace("-", "") in ("nouveau", "novacore")


def _why(stack: Stack | Unknown) -> tuple[Why, ...]:
    assert not isinstance(stack, Unknown)
    return tuple(Why(r.about, r.says, r.source) for r in stack.reasons if r.about.startswith("driver"))
