"""Where a driver's packages come from on a host: source entries, keys, pins, and what has to go in first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..facts.known import Unknown
from . import apt_sources, nvidia_repository
from .wanted import File, Key

if TYPE_CHECKING:
    from ..catalog.stack import Driver
    from ..facts import Facts
    from ..profile.model import Profile


@dataclass(frozen=True)
class Supply:
    """What makes a driver's packages known to apt, and keeps them where they are.

    `first` are packages that go in before all others, in a transaction of their own.
    """

    files: tuple[File, ...] = ()
    keys: tuple[Key, ...] = ()
    steps: tuple[str, ...] = ()
    first: tuple[str, ...] = ()
    refused: str | None = None


def supply(facts: Facts, profile: Profile, driver: Driver) -> Supply:
    """The supply of a driver from NVIDIA's repository or the distribution's own archive."""
    if driver.source == "nvidia":
        found = nvidia_repository.repository(facts, profile, driver)
        return Supply(found.files, found.keys, found.steps, _pinning(facts, driver), found.refused)
    archive = apt_sources.archive(facts)
    away = nvidia_repository.kept_away(facts, profile, driver)
    return Supply((File(apt_sources.PATH, archive.text), *away), refused=archive.refused)


def _pinning(facts: Facts, driver: Driver) -> tuple[str, ...]:
    """NVIDIA's pinning package of the branch, where the repository has one: our own pin says the same."""
    name = f"nvidia-driver-pinning-{driver.branch}"
    offers = facts.policy
    known = not isinstance(offers, Unknown) and name in offers
    return (name,) if driver.pin_by == "pinning-package" and known else ()
