"""The installed packages that carry the driver's own release, and whose build each is."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ..facts.versions import driver_version, upstream

if TYPE_CHECKING:
    from ..facts.packages import Package, Packages

# Not toolkits, nor helpers that have releases of their own.
_NAME = re.compile(
    r"(lib)?nvidia-(?!container|docker|cuda|cudnn|modprobe|settings|xconfig|persistenced|firmware|installer)"
    r"|libcuda1|cuda-drivers"
)


def members(packages: Packages) -> tuple[Package, ...]:
    """In order of name."""
    found = (p for p in packages.installed.values() if _NAME.match(p.name))
    return tuple(sorted((p for p in found if driver_version(upstream(p.version))), key=lambda p: p.name))


def mixed(packages: Packages) -> dict[str, list[str]]:
    """Packages by release and packager where there is more than one of either; else nothing.

    580.95.05 is one release in `-0ubuntu0.24.04.2`, `-0ubuntu1`, `-1` and `-1ubuntu1`, and these are
    builds of the Ubuntu archive and of NVIDIA's repository, which replace each other's files.
    """
    kinds: dict[tuple[str | None, str], list[str]] = {}
    for package in members(packages):
        kind = driver_version(upstream(package.version)), _packager(package.version)
        kinds.setdefault(kind, []).append(f"{package.name} {package.version}")
    releases, makers = {release for release, _ in kinds}, {maker for _, maker in kinds}
    if len(releases) <= 1 and len(makers - {""}) + ("Ubuntu" in makers and "" in makers) <= 1:
        return {}
    return {f"{release} of {maker or 'NVIDIA or Debian'}": names for (release, maker), names in kinds.items()}


def _packager(version: str) -> str:
    """`Ubuntu`, `Debian`, `NVIDIA`, or nothing for a bare revision, which both of the latter two use."""
    revision = version.rpartition("-")[2]
    if re.search(r"ubuntu[\d.]*\.\d\d\.\d\d", revision):
        return "Ubuntu"
    if re.search(r"deb\d+u|bpo", revision):
        return "Debian"
    return "NVIDIA" if "ubuntu" in revision else ""
