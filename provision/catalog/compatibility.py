"""How a CUDA toolkit runs on a driver: by itself, by one of the two kinds of compatibility, or not at all."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from .numbers import above, below, major, minor, number, starts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .rows import Branch, Floor, Gpu, Toolkit
    from .tables import Catalog

NATIVE, MINOR, FORWARD, NONE = "native", "minor", "forward", "none"
RANK = {NATIVE: 0, MINOR: 1, FORWARD: 2, NONE: 3}


@lru_cache(maxsize=1024)
def toolkits(of: Catalog, version: str) -> tuple[Toolkit, ...]:
    """The releases that a version stands for: 13.0 for all its updates, 13.0.2 for one."""
    return tuple(t for t in of.toolkits if starts(t.version, version))


@lru_cache(maxsize=1024)
def wanted_driver(of: Catalog, version: str) -> str | None:
    """The driver that the release notes ask for, of a minor release its first's; None where none is known."""
    for toolkit in toolkits(of, version):
        if toolkit.min:
            return toolkit.min
    return None


@lru_cache(maxsize=1024)
def floor(of: Catalog, version: str) -> Floor | None:
    """The row of minor-version compatibility that covers a toolkit; the narrowest where two do."""
    rows = [
        f
        for f in of.floors
        if f.major == major(version)
        and number(f.first) <= number(minor(version))
        and (f.last is None or number(minor(version)) <= number(f.last))
    ]
    return max(rows, key=lambda f: number(f.first)) if rows else None


def reaches(branch: Branch, release: str | None, bound: str) -> bool:
    """Whether a driver reaches a bound: the exact release where it is known, else the branch's newest."""
    if release is not None:
        return not below(release, bound)
    if branch.branch != major(bound):
        return branch.branch > major(bound)
    return branch.newest is None or not above(bound, branch.newest)


def compatibility(of: Catalog, branch: Branch, release: str | None, version: str, gpus: Sequence[Gpu]) -> str:
    """How a toolkit runs on a branch, or on one of its releases (NVIDIA CUDA Compatibility guide)."""
    wanted = wanted_driver(of, version)
    if not above(minor(version), branch.max_cuda) and (wanted is None or reaches(branch, release, wanted)):
        return NATIVE
    lowest = floor(of, version)
    if lowest and reaches(branch, release, lowest.min):
        return MINOR
    forward = of.raw["cuda"]["forward"]
    if (
        all(g.segment in forward["segments"] for g in gpus)
        and branch.type in forward["base_types"]
        and branch.branch >= forward["first_base"]
    ):
        return FORWARD
    return NONE
