"""The driver on RHEL and its kin, from NVIDIA's RPM repository by dnf.

Written from NVIDIA's Driver Installation Guide (version locking, kernel modules) and not yet tried on a
host: RHEL 8 and 9 have module streams of a branch, RHEL 10 has none and locks versions.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..facts.known import Unknown
from .nvidia_repository import address_of, data
from .wanted import File

if TYPE_CHECKING:
    from ..catalog.stack import Driver
    from ..facts import Facts
    from ..facts.packages import Packages
    from ..profile.model import Profile

REPOSITORY = "/etc/yum.repos.d/gpu-provision-nvidia.repo"
KEY = "/etc/pki/rpm-gpg/RPM-GPG-KEY-gpu-provision-nvidia"
LOCKS = "/etc/dnf/plugins/versionlock.list"
_STREAMS = "/etc/dnf/modules.d/*.module"
_REPOSITORIES = "/etc/yum.repos.d/*.repo"


@dataclass(frozen=True)
class Dnf:
    """`stream` is a module stream to enable first, `locks` patterns to lock afterwards; either may be empty.

    `devel` are the kernels' development packages. `enable` and `lock` tell what is to be done.
    """

    packages: tuple[str, ...] = ()
    devel: tuple[str, ...] = ()
    stream: str = ""
    enable: bool = False
    locks: tuple[str, ...] = ()
    lock: bool = False
    files: tuple[File, ...] = ()
    steps: tuple[str, ...] = ()
    refused: str | None = None


def serves(driver: Driver) -> bool:
    return driver.pin_by in ("dnf-module", "dnf-versionlock")


def dnf(facts: Facts, profile: Profile, driver: Driver, packages: Packages, kernels: tuple[str, ...]) -> Dnf:
    """What dnf is given on this host, or why it cannot be."""
    if packages.manager != "rpm" or not (packages.get("dnf") or packages.get("dnf5")):
        return Dnf(refused="the driver of RHEL and its kin is installed by dnf, and this host has no dnf")
    address, repositories = address_of(facts, profile), facts.files(_REPOSITORIES)
    if isinstance(address, Unknown):
        return Dnf(refused=address.reason)
    if isinstance(repositories, Unknown):
        return Dnf(refused=f"dnf's repositories are not known: {repositories.reason}")
    if packages.get("dkms") is None and not any("epel" in path.lower() for path in repositories):
        return Dnf(
            refused="dkms, which builds the module, comes from EPEL, and this host has no repository of that "
            "name: add epel-release"
        )
    stream = driver.pin[0] if driver.pin_by == "dnf-module" and driver.pin else ""
    locks = driver.pin if driver.pin_by == "dnf-versionlock" else ()
    enable, lock = bool(stream) and not _enabled(facts, stream), bool(locks) and not _locked(facts, driver)
    missing = _without_devel(facts, kernels)
    key = str(profile["nvidia_driver_repository_key"] or "")
    return Dnf(
        packages=driver.packages,
        devel=missing,
        stream=stream,
        enable=enable,
        locks=locks,
        lock=lock,
        files=(
            *([File(KEY, key)] if key else []),
            File(REPOSITORY, repository_text(address, own_key=bool(key))),
        ),
        steps=(
            *([f"enable the module stream {stream}"] if enable else []),
            *(f"install {name}" for name in missing),
            *([f"lock {', '.join(locks)}"] if lock else []),
        ),
    )


def repository_text(address: str, *, own_key: bool) -> str:
    """The repository's entry. dnf fetches the key and, as it checks each package, asks for no other."""
    key = f"file://{KEY}" if own_key else f"{address}/{data()['cuda']['rpm_key']['file']}"
    lines = [
        "# Written by gpu-provision: NVIDIA's package repository.",
        "[gpu-provision-nvidia]",
        "name=NVIDIA, by gpu-provision",
        f"baseurl={address}/",
        "enabled=1",
        "gpgcheck=1",
        f"gpgkey={key}",
    ]
    return "\n".join(lines) + "\n"


def _without_devel(facts: Facts, kernels: tuple[str, ...]) -> tuple[str, ...]:
    assert not isinstance(facts.kernels, Unknown)
    there = {kernel.release for kernel in facts.kernels if kernel.headers}
    return tuple(f"kernel-devel-{release}" for release in kernels if release not in there)


def _enabled(facts: Facts, stream: str) -> bool:
    """Whether a stream `name:branch` is the enabled one, by dnf's own state file."""
    found, (name, _, branch) = facts.files(_STREAMS), stream.partition(":")
    if isinstance(found, Unknown):
        return False
    for text in found.values():
        if not isinstance(text, Unknown) and f"[{name}]" in text:
            return re.search(rf"^stream={re.escape(branch)}$", text, re.M) is not None
    return False


def _locked(facts: Facts, driver: Driver) -> bool:
    found = facts.files(LOCKS)
    texts = [] if isinstance(found, Unknown) else [text for text in found.values() if isinstance(text, str)]
    return any(re.search(rf"nvidia\S*{driver.branch}\.", text) for text in texts)
