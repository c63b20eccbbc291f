"""NVIDIA's package repository on a host with apt: its key, its source entry and its pin.

One answer for every role that installs from there, so that two roles cannot write different ones. The
address is a variable, which is how a site without a way out uses a mirror. What an administrator has
entered already is used as it is: two entries of one archive that differ in Signed-By end all use of apt.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..catalog.question import canonical_arch, canonical_os
from ..catalog.tables import catalog
from ..errors import Usage
from ..facts.known import Absent, Unknown
from ..yaml_text import read_yaml
from .wanted import File, Key

if TYPE_CHECKING:
    from ..catalog.stack import Driver
    from ..facts import Facts
    from ..facts.apt_sources import AptSource
    from ..profile.model import Profile

SOURCE = "/etc/apt/sources.list.d/gpu-provision-nvidia.sources"
KEYRING = "/etc/apt/keyrings/gpu-provision-nvidia.asc"
PIN = "/etc/apt/preferences.d/gpu-provision"
# As in NVIDIA's own pinning packages. From 1000 on apt also goes back to what is pinned (apt_preferences(5)).
BRANCH_PRIORITY = 1000
_DATA = Path(__file__).parent.parent / "catalog" / "data" / "repositories.yml"
_MACHINES = {"x86_64": "x86_64", "aarch64": "sbsa"}
_HEAD = "# Written by gpu-provision: {}\n"


@cache
def data() -> dict[str, Any]:
    """Addresses, keys and package patterns of NVIDIA's repositories."""
    return dict(read_yaml(_DATA.read_text(encoding="utf-8")))


@dataclass(frozen=True)
class Repository:
    """Files and keys that make the repository known to apt; `refused` says why there can be none.

    `address` is the repository's own. `steps` are what the plan says of keys that are still to be fetched.
    """

    files: tuple[File, ...] = ()
    keys: tuple[Key, ...] = ()
    steps: tuple[str, ...] = ()
    address: str = ""
    refused: str | None = field(default=None)


def repository(facts: Facts, profile: Profile, driver: Driver | None) -> Repository:
    """The repository as a role needs it that installs from it."""
    address, sources = address_of(facts, profile), facts.apt_sources
    if isinstance(address, Unknown):
        return Repository(refused=address.reason)
    if isinstance(sources, Unknown):
        return Repository(refused=f"apt's sources cannot be read: {sources.reason}")
    theirs = entries(facts, address)
    if len({source.signed_by for source in theirs}) > 1:
        told = " and ".join(f"{source.path}:{source.line}" for source in theirs)
        return Repository(
            refused=f"{told} name {address} with different keys, so that apt reads no source at all; remove "
            "one of them"
        )
    pin = File(PIN, pin_text(driver, profile["nvidia_driver_version"]))
    if theirs:
        return Repository((File(SOURCE, None), File(KEYRING, None), pin), address=address)
    text = profile["nvidia_driver_repository_key"]
    source = File(SOURCE, source_text(address))
    if text:
        return Repository((File(KEYRING, _line_end(text)), source, pin), address=address)
    key = Key(
        KEYRING,
        tuple(f"{address}/{key['file']}" for key in data()["cuda"]["keys"]),
        tuple(key["fingerprint"] for key in data()["cuda"]["keys"]),
    )
    there = isinstance(facts.file(KEYRING), str)
    steps = () if there else (f"fetch the key of {address}",)
    return Repository((source, pin), (key,), steps, address)


def kept_away(facts: Facts, profile: Profile, driver: Driver) -> tuple[File, ...]:
    """The pin for a driver of another source on a host that has NVIDIA's repository too, for its toolkits.

    NVIDIA's driver packages have the same names and higher versions; without the pin an upgrade takes them.
    """
    address = address_of(facts, profile)
    if isinstance(address, Unknown) or not entries(facts, address, ours=True):
        return ()
    return (File(PIN, pin_text(driver)),)


def address_of(facts: Facts, profile: Profile) -> str | Unknown:
    """The repository of this host's distribution and machine, without a slash at its end."""
    os, arch = facts.os, facts.arch
    if isinstance(os, Unknown):
        return Unknown(f"the distribution is not known: {os.reason}", os.item)
    if isinstance(arch, Unknown):
        return Unknown(f"the machine's kind is not known: {arch.reason}", arch.item)
    try:
        row, machine = catalog().distributions[canonical_os(os.code, catalog())], canonical_arch(arch)
    except Usage as e:
        return Unknown(e.says, "os-release")
    if row.repo is None or machine not in row.arches:
        return Unknown(f"NVIDIA has no repository for {row.name} on {machine}", "os-release")
    return f"{str(profile['nvidia_driver_repository']).rstrip('/')}/{row.repo}/{_MACHINES[machine]}"


def entries(facts: Facts, address: str, *, ours: bool = False) -> tuple[AptSource, ...]:
    """Entries of apt's sources that name the repository: the administrator's, or with `ours` our own, too."""
    sources = facts.apt_sources
    listed = () if isinstance(sources, Absent | Unknown) else sources
    return tuple(
        source
        for source in listed
        if source.enabled
        and (ours or source.path != SOURCE)
        and "deb" in source.types
        and any(uri.rstrip("/") == address for uri in source.uris)
    )


def source_text(address: str) -> str:
    """The entry of a flat repository (sources.list(5): the suite is a path and ends with a slash)."""
    lines = ["Types: deb", f"URIs: {address}/", "Suites: /", f"Signed-By: {KEYRING}"]
    return _HEAD.format("NVIDIA's package repository.") + "\n".join(lines) + "\n"


def pin_text(driver: Driver | None, release: str | None = None) -> str:
    """apt's preferences: the repository before others, and of its driver one branch, one release, or none.

    The first record that fits a package counts, and one that names packages counts before one for all.
    A branch lets its fixes through; `release` is one that the profile names.
    """
    raw = data()["cuda"]
    names = " ".join(data()["driver_packages"])
    everything = f"Package: *\nPin: release l={raw['label']}\nPin-Priority: {raw['priority']}\n"
    if driver is None or driver.source != "nvidia":
        head = _HEAD.format("the driver does not come from NVIDIA's repository, toolkits may.")
        return f"{head}Package: {names}\nPin: release l={raw['label']}\nPin-Priority: -1\n\n{everything}"
    head = _HEAD.format(f"the driver stays on {release or f'branch {driver.branch}'}.")
    # One more than the pinning package, which knows the branch alone and would take its newest release.
    pin, priority = (
        (f"{release}-*", BRANCH_PRIORITY + 1) if release else (f"{driver.branch}.*", BRANCH_PRIORITY)
    )
    return f"{head}Package: {names}\nPin: version {pin}\nPin-Priority: {priority}\n\n{everything}"


def _line_end(text: str) -> str:
    return text if text.endswith("\n") else f"{text}\n"
