"""What stands in the way of a driver on a host: one of another making, or Secure Boot."""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..facts.kernels import LoadedDriver, ModInfo
from ..facts.known import Unknown
from ..yaml_text import read_yaml

if TYPE_CHECKING:
    from ..facts import Facts

_DATA = Path(__file__).parent.parent / "catalog" / "data" / "driver_names.yml"


@cache
def _data() -> dict[str, Any]:
    return dict(read_yaml(_DATA.read_text(encoding="utf-8")))


def names(section: str) -> tuple[str, ...]:
    """Patterns of package names or paths of one section of the data file."""
    return tuple(_data()[section])


@lru_cache(maxsize=8192)
def named(name: str, section: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in names(section))


def build_space() -> int:
    """Bytes that DKMS needs to build the module for one kernel."""
    return int(_data()["build_bytes"])


def foreign(facts: Facts) -> str | None:
    """Why a driver that no package brought is in the way, and the way out; None where there is none."""
    if virtual := vgpu(facts):
        return (
            f"{virtual}: a guest driver of a virtual GPU, which has to match its hypervisor and its licence. "
            "It is left alone; keep it and leave the role out"
        )
    if left := runfile(facts):
        return f"{left}. Run `nvidia-uninstall` (or the .run file with --uninstall), then this again"
    return None


def vgpu(facts: Facts) -> str | None:
    """What shows that this host's driver is a vGPU guest driver, in words."""
    packages, files = facts.packages, facts.driver_files
    if not isinstance(packages, Unknown):
        found = [name for name in packages.installed if named(name, "vgpus")]
        if found:
            return f"{found[0]} is installed"
    if not isinstance(files, Unknown):
        there = [f.path for f in files if f.path in names("vgpu_files")]
        if there:
            return f"{there[0]} is there"
    return None


def runfile(facts: Facts) -> str | None:
    """What NVIDIA's .run installer left, in words: a program or a module that no package owns."""
    files, packages, kernels = facts.driver_files, facts.packages, facts.kernels
    if not isinstance(files, Unknown):
        left = [f.path for f in files if f.package is None and f.path in names("runfile_programs")]
        if left:
            return f"{left[0]} belongs to no package: NVIDIA's .run installer was here"
    if isinstance(packages, Unknown) or any(named(name, "builders") for name in packages.installed):
        return None
    if not isinstance(kernels, Unknown):
        built = [k for k in kernels if k.nvidia_module is not None]
        if built:
            return f"kernel {built[0].release} has a module {built[0].nvidia_module} that no package brought"
    if isinstance(facts.modinfo, ModInfo):
        return f"the module {facts.modinfo.filename} ({facts.modinfo.version}) belongs to no package"
    return None


def secure_boot_refusal(facts: Facts, *, signed: bool = False) -> str | None:
    """Why a module built here would not load; None where it would, or where that is not known.

    `signed` is True where the modules come built and signed by the distribution.

    With Secure Boot on, the kernel takes modules only from keys that the firmware or the machine
    owner's list has. A module that is loaded already, or a key that is enrolled, settles it.
    """
    state = facts.secure_boot
    if isinstance(state, Unknown) or not state.enabled:
        return None
    if signed or isinstance(facts.loaded_driver, LoadedDriver) or facts.dkms_key_enrolled is True:
        return None
    return (
        "Secure Boot is on, and the kernel would refuse the module that DKMS builds here. Choose: enrol its "
        "key (`mokutil --import /var/lib/dkms/mok.pub`, confirm at the console in the next boot); switch "
        "Secure Boot off in the firmware; or use a distribution whose archive has signed modules (Ubuntu)"
    )
