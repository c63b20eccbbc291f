"""What stands in the way of a driver on a host: one of another making, or Secure Boot."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ..facts.kernels import LoadedDriver, ModInfo
from ..facts.known import Unknown
from ..facts.versions import upstream

if TYPE_CHECKING:
    from ..catalog.stack import Driver
    from ..facts import Facts
    from ..facts.packages import Packages

# Names that only NVIDIA's repository or Ubuntu's archive has (catalog packages.yml, `never_mixed`).
_NOT_DEBIANS = re.compile(
    r"cuda-drivers(-.*)?|nvidia-open(-\d.*)?|nvidia-driver-(pinning|cuda|open|libs-\d|\d).*|nvidia-dkms(-\d.*|-open)?"
    r"|nvidia-kernel-(common|source)-\d.*|nvidia-(compute-)?utils-\d.*|nvidia-headless-.*"
    r"|libnvidia-(compute(-\d.*)?|cfg1-\d.*|gpucomp-\d.*)|nvidia-firmware(-\d.*)?|linux-modules-nvidia-.*"
)
_BUILDERS = re.compile(
    r"nvidia-(open-|tesla-[\d-]*|legacy-\w+-)?kernel-dkms|nvidia-dkms.*|linux-modules-nvidia-.*|nvidia-kernel-\S+-modules"
)


def foreign(facts: Facts, driver: Driver) -> str | None:
    """Why a driver of another making is in the way, and the way out; None where there is none."""
    packages = facts.packages
    if isinstance(packages, Unknown):
        return None
    others = strangers(packages)
    if others:
        return (
            f"a driver of another source is installed ({', '.join(others[:6])}); two sources on one host replace "
            "each other's files. Remove it first (`apt-get purge`), or keep it and leave nvidia_driver out"
        )
    left = runfile(facts)
    if left:
        return f"{left}. Run `nvidia-uninstall` (or the .run file with --uninstall), then this again"
    if driver.version is not None:
        newer = _newer_than_archive(packages, driver)
        if newer:
            return newer
    return None


def strangers(packages: Packages) -> tuple[str, ...]:
    """Installed driver packages under names that Debian's archive does not have."""
    return tuple(name for name in sorted(packages.installed) if _NOT_DEBIANS.fullmatch(name))


def runfile(facts: Facts) -> str | None:
    """What NVIDIA's .run installer left, in words: a module or a program that no package owns."""
    packages, kernels = facts.packages, facts.kernels
    if isinstance(packages, Unknown):
        return None
    owned = any(_BUILDERS.fullmatch(name) for name in packages.installed)
    if owned:
        return None
    if not isinstance(kernels, Unknown):
        built = [k for k in kernels if k.nvidia_module is not None]
        if built:
            module = f"an NVIDIA module {built[0].nvidia_module}"
            return f"kernel {built[0].release} has {module} that no package brought"
    if isinstance(facts.modinfo, ModInfo):
        return (
            f"{facts.modinfo.filename or 'an NVIDIA module'} ({facts.modinfo.version}) belongs to no package"
        )
    return None


def _newer_than_archive(packages: Packages, driver: Driver) -> str | None:
    """libcuda1 and others are named alike in Debian's archive and NVIDIA's repository; the branch tells."""
    from ..facts.versions import branch

    for name in ("libcuda1", "libnvidia-ml1", "nvidia-smi", "nvidia-kernel-support", "nvidia-alternative"):
        package = packages.get(name)
        number = branch(upstream(package.version)) if package else None
        if package and number is not None and number > driver.branch:
            return f"{name} {package.version} is of a newer branch than {driver.branch}: another source's"
    return None


def secure_boot_refusal(facts: Facts) -> str | None:
    """Why a module built here would not load; None where it would, or where it is not known.

    With Secure Boot on, the kernel takes modules only from keys that the firmware or the machine
    owner's list has. A module that is loaded already has proven its key.
    """
    state = facts.secure_boot
    if isinstance(state, Unknown) or not state.enabled:
        return None
    if isinstance(facts.loaded_driver, LoadedDriver) or facts.mok_enrolled is True:
        return None
    return (
        "Secure Boot is on, and the kernel would refuse the module that DKMS builds here. Choose: enrol DKMS's "
        "key (`mokutil --import /var/lib/dkms/mok.pub`, then confirm at the console in the next boot); switch "
        "Secure Boot off in the firmware; or use a distribution whose archive has signed modules (Ubuntu)"
    )
