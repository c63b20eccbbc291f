"""Whose packages the installed driver is made of: Debian's, Ubuntu's or NVIDIA's own repository."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import TYPE_CHECKING

from ..catalog.host import source_of
from ..catalog.question import canonical_os
from ..catalog.tables import catalog
from ..errors import Usage
from ..facts.known import Unknown
from ..facts.versions import branch, driver_version, upstream
from .driver_place import named, names
from .nvidia_repository import data

if TYPE_CHECKING:
    from ..catalog.stack import Driver
    from ..facts import Facts
    from ..facts.packages import Package, Packages

_ONLY = {"nvidia": "only_nvidias", "ubuntu": "only_ubuntus", "debian": "only_debians"}
# 580.95.05-0ubuntu0.24.04.2 is Ubuntu's, -0ubuntu1 and -1ubuntu1 are NVIDIA's, -1~deb12u1 and ~bpo Debian's.
_REVISIONS = (
    ("ubuntu", re.compile(r"ubuntu[\d.]*\.\d\d\.\d\d")),
    ("nvidia", re.compile(r"ubuntu\d+$")),
    ("debian", re.compile(r"deb\d+u|bpo")),
)


def family_of(facts: Facts) -> str:
    """debian, ubuntu or rhel; nothing where the distribution is none of the catalog's."""
    os = facts.os
    if isinstance(os, Unknown):
        return ""
    try:
        return catalog().distributions[canonical_os(os.code, catalog())].family
    except Usage:
        return ""


@lru_cache(maxsize=8192)
def is_drivers(name: str) -> bool:
    """Whether a package is of the driver, by its name."""
    return any(fnmatchcase(name, pattern) for pattern in data()["driver_packages"])


def members(packages: Packages) -> tuple[Package, ...]:
    """Installed packages of the driver that carry its release, in order of name."""
    found = (
        p for p in packages.installed.values() if is_drivers(p.name) and driver_version(upstream(p.version))
    )
    return tuple(sorted(found, key=lambda package: package.name))


def origin(package: Package, facts: Facts, family: str) -> str | None:
    """The source that a package came from; None where that cannot be told.

    By the archive that still has its version, by a name that one source alone has, by the packager's
    revision, and at last by the one source that offers the package at all.
    """
    policy = facts.policy
    offer = None if isinstance(policy, Unknown) else policy.get(package.name)
    if offer is not None:
        here = {source_of(o, family) for o in offer.archives(package.version)}
        if len(here) == 1:
            return here.pop()
    for source, section in _ONLY.items():
        if named(package.name, section):
            return source
    for source, pattern in _REVISIONS:
        if pattern.search(package.version.rpartition("-")[2]):
            return source
    if offer is not None:
        anywhere = {source_of(o, family) for version in offer.versions for o in offer.archives(version)}
        if len(anywhere) == 1:
            return anywhere.pop()
    return None


def strangers(facts: Facts, packages: Packages, driver: Driver) -> tuple[Package, ...]:
    """Packages of the driver that did not come from its source.

    What NVIDIA and a distribution name alike is told apart by the branch, too: the distribution has none
    that is newer than the chosen one.
    """
    found, family, source = [], family_of(facts), driver.source
    for package in members(packages):
        whose = origin(package, facts, family)
        number = branch(upstream(package.version))
        if whose is None and source != "nvidia" and package.name in names("same_name"):
            whose = "nvidia" if number is not None and number > driver.branch else None
        if whose is not None and whose != source:
            found.append(package)
    return tuple(found)
