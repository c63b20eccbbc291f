"""Why a driver must not be installed on a host as it is, and the way out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..facts.known import Unknown
from ..facts.versions import driver_tuple, driver_version, upstream
from .driver_origin import family_of, members, origin
from .driver_place import names

if TYPE_CHECKING:
    from ..catalog.stack import Driver
    from ..facts import Facts
    from ..facts.packages import Package, Packages
    from ..profile.model import Profile


def no_card(facts: Facts) -> str | None:
    gpus = facts.nvidia_gpus_on_bus
    if isinstance(gpus, Unknown):
        return f"the devices on the bus are not known: {gpus.reason}"
    if not gpus:
        return "there is no NVIDIA GPU on this host's bus"
    if all(gpu.passed_through for gpu in gpus):
        return f"all GPUs of this host are given to virtual machines ({gpus[0].driver}); they are left alone"
    return None


def off_the_bus(gone: tuple[str, ...]) -> str:
    return (
        f"a GPU of this host is off the bus ({'; '.join(gone[:4])}): with another driver nobody could tell "
        "its fault from the driver's. Reboot; if it comes back lost, look at power, cooling and seating, "
        "then change the driver"
    )


def two_sources(
    facts: Facts, packages: Packages, profile: Profile, driver: Driver, others: tuple[Package, ...]
) -> str | None:
    """Packages of another source stay where nobody named one: a driver is replaced only when asked."""
    if not others or profile["nvidia_driver_source"] != "auto":
        return None
    kinds: dict[str, list[str]] = {}
    for package in members(packages):
        kind = origin(package, facts, family_of(facts)) or "unknown"
        kinds.setdefault(kind, []).append(f"{package.name} {package.version}")
    told = "; ".join(f"{kind}: {', '.join(found[:4])}" for kind, found in sorted(kinds.items()))
    return (
        f"the driver's packages come from more than one source ({told}), and these replace each other's "
        f"files. Name the one to keep (nvidia_driver_source: {driver.source}, for one): what is of the other "
        "is then replaced or removed in the same transaction"
    )


def downgrade(packages: Packages, driver: Driver, profile: Profile) -> str | None:
    """Going back to an older driver is done only where the profile names it."""
    alone = names("independent")
    there = {driver_version(upstream(p.version)) for p in members(packages) if p.name not in alone}
    releases = {found: version for version in there if version and (found := driver_tuple(version))}
    then = driver_tuple(driver.version) if driver.version else (driver.branch + 1,)
    if not releases or then is None or then >= max(releases):
        return None
    branch, version, flavour = (profile[f"nvidia_driver_{name}"] for name in ("branch", "version", "modules"))
    if version or branch or flavour != "auto":
        return None
    return (
        f"driver {releases[max(releases)]} is installed and {driver.version or driver.branch} would be "
        "older; name it by nvidia_driver_version or nvidia_driver_branch to go back"
    )
