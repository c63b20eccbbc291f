"""What stands in the way of a driver on a host: one of another making."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..facts.kernels import ModInfo
from ..facts.known import Unknown
from ..yaml_text import read_yaml

if TYPE_CHECKING:
    from ..facts import Facts
    from ..facts.nvidia_files import OwnedFile

RUNFILE_OUT = (
    "Run `nvidia-uninstall`; where it is gone, the .run file of the same release with --uninstall, which "
    "removes what it would have installed"
)
# A library at its own release; names without one are links, which the distribution's alternatives make too.
_LIBRARY = re.compile(r"/(?:libcuda|libnvidia-ml)\.so\.\d{3,4}(?:\.\d+){1,2}")
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
        return f"{left}. {RUNFILE_OUT}, then this again"
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
        if _boots(facts) and (loose := _loose_libraries(files)):
            return f"{loose[0]} belongs to no package, and programs would load it in place of a package's"
    if isinstance(packages, Unknown):
        return None
    # One whose build failed for another kernel is half-configured, and has built this one's module.
    there = (*packages.installed, *(package.name for package in packages.half_configured))
    if any(named(name, "builders") for name in there):
        return None
    if not isinstance(kernels, Unknown):
        built = [k for k in kernels if k.nvidia_module is not None]
        if built:
            return f"kernel {built[0].release} has a module {built[0].nvidia_module} that no package brought"
    if isinstance(facts.modinfo, ModInfo):
        return f"the module {facts.modinfo.filename} ({facts.modinfo.version}) belongs to no package"
    return None


def _loose_libraries(files: tuple[OwnedFile, ...]) -> list[str]:
    return [f.path for f in files if f.package is None and f.target is None and _LIBRARY.search(f.path)]


def _boots(facts: Facts) -> bool:
    """Whether the host has a kernel of its own. A container without one has its machine's driver, whose
    libraries its runtime or the .run installer put there, as they should.
    """
    return not isinstance(facts.kernels, Unknown) and any(kernel.image for kernel in facts.kernels)
