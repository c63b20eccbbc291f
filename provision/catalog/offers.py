"""What a host's archives really offer: the versions of packages, with the source that each comes from."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from .numbers import number

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


@dataclass(frozen=True)
class Offer:
    """One version of a package from `source` (nvidia, debian, ubuntu); apt takes a `candidate` by itself."""

    version: str
    source: str
    candidate: bool = False


@dataclass(frozen=True)
class Release:
    """A driver release that an archive holds whole: its own version and that of each package."""

    version: str
    packages: Mapping[str, str] = field(hash=False)


@dataclass(frozen=True)
class Offers:
    """The archives of one host. A package that is not in `packages` is known not to be offered.

    `installed` is the source that the host's present driver came from, None where it has none, and
    `present` the versions of its installed packages.
    """

    packages: Mapping[str, tuple[Offer, ...]]
    installed: str | None = None
    present: Mapping[str, str] = field(default_factory=dict)

    def of(self, name: str, source: str) -> tuple[Offer, ...]:
        """The offers of one package from one source."""
        return self._of.get((name, source), ())

    @cached_property
    def _of(self) -> Mapping[tuple[str, str], tuple[Offer, ...]]:
        found: dict[tuple[str, str], tuple[Offer, ...]] = {}
        for name, offers in self.packages.items():
            for offer in offers:
                found[name, offer.source] = (*found.get((name, offer.source), ()), offer)
        return found

    def knows(self, names: Iterable[str], source: str) -> bool:
        """Whether that source offers any of these packages, so that the others' absence means something."""
        return any(self.of(name, source) for name in names)

    def releases(
        self, lockstep: Sequence[str], beside: Sequence[str], source: str, branch: int
    ) -> tuple[Release, ...]:
        """Driver releases of a branch that can be installed whole, oldest first.

        A release counts where every lockstep package has its upstream version. Versions newer than what apt
        would take by itself (backports, proposed) are left alone; older ones count, since a distribution may
        mend one flavour of the modules before the other. NVIDIA's repository keeps all of its branches
        side by side, and what apt would take of them is what a pin or a hold leaves.
        """
        table = {name: self.of(name, source) for name in lockstep}
        if not all(table.values()) or not all(self.of(name, source) for name in beside):
            return ()
        common = set.intersection(*({_upstream(o.version) for o in offers} for offers in table.values()))
        found = []
        for version in sorted((v for v in common if number(v).major == branch), key=number):
            limit = source != "nvidia"
            chosen = {name: _best(offers, version, limit=limit) for name, offers in table.items()}
            if all(chosen.values()):
                loose = {name: _newest(self.of(name, source)) for name in beside}
                found.append(Release(version, {**{n: v for n, v in chosen.items() if v}, **loose}))
        return tuple(found)

    def installed_release(
        self, lockstep: Sequence[str], beside: Sequence[str], source: str
    ) -> Release | None:
        """The driver release that the host has whole from a source, still in its archives or not."""
        if self.installed != source or not all(name in self.present for name in lockstep):
            return None
        versions = {_upstream(self.present[name]) for name in lockstep}
        if len(versions) > 1 or "0" in versions:
            return None
        kept = {name: self.present[name] for name in (*lockstep, *beside) if name in self.present}
        return Release(versions.pop(), kept)

    def at(self, name: str, source: str, release: str) -> str | None:
        """The newest version of a package that carries a driver release; None where there is none."""
        same = [o.version for o in self.of(name, source) if _upstream(o.version) == release]
        return _newer_first(same)[0] if same else None

    def newest(self, name: str, source: str, prefix: str = "") -> str | None:
        """The newest version of a package whose text starts so; None where there is none."""
        versions = [o.version for o in self.of(name, source) if o.version.startswith(prefix)]
        return _newer_first(versions)[0] if versions else None


def _newer_first(versions: Iterable[str]) -> list[str]:
    # The facts are a large package, and only a host's question needs them.
    from ..facts.versions import debian_key

    return sorted(versions, key=debian_key, reverse=True)


def _upstream(version: str) -> str:
    from ..facts.versions import driver_version, upstream

    return driver_version(upstream(version)) or "0"


def _best(offers: Sequence[Offer], version: str, *, limit: bool) -> str | None:
    """The package version of a release: the candidate, or the newest one; with `limit` one older than it."""
    same = [o for o in offers if _upstream(o.version) == version]
    for offer in same:
        if offer.candidate:
            return offer.version
    ranked = _newer_first(o.version for o in offers)
    candidates = [ranked.index(o.version) for o in offers if o.candidate and limit]
    older = [v for v in ranked[min(candidates, default=0) :] if any(v == o.version for o in same)]
    return older[0] if older else None


def _newest(offers: Sequence[Offer]) -> str:
    for offer in offers:
        if offer.candidate:
            return offer.version
    return _newer_first(o.version for o in offers)[0]
