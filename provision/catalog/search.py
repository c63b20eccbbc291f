"""Finding sets that satisfy rules: choices are made stage by stage, each rule judged as soon as it can be."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from .card_rules import known_version
from .catalog_rules import catalog_rules, debian_library, main_packages
from .compatibility import RANK, compatibility
from .demand_rules import demand_rules
from .numbers import above, below, major, minor, number
from .question import ARCHES, Question
from .rules import Candidate, Rule

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from .rows import DriverPackages
    from .tables import Catalog

SOURCES = ("nvidia", "debian", "ubuntu")


@dataclass
class Space:
    """The sets that some of a question's demands allow. `kept` holds the owners of the demands that count.

    Without the demand for the host's distribution every one is allowed, and what the host's archives offer
    counts no more. `dropped` names rules to leave out, which is how an explanation finds those that matter.
    """

    question: Question
    kept: Collection[str]
    dropped: Collection[Rule] = ()
    rules: dict[str, list[Rule]] = field(init=False)
    places: tuple[tuple[str, str], ...] = field(init=False)

    def __post_init__(self) -> None:
        q = self.question
        systems = (q.os,) if q.os_label in self.kept else tuple(q.catalog.distributions)
        arches = (q.arch,) if q.arch_label in self.kept else ARCHES
        self.places = tuple((os, arch) for os in systems for arch in arches)
        self.rules = {}
        self._judged: dict[tuple[object, ...], bool] = {}
        self._origins: dict[tuple[object, ...], tuple[str, ...]] = {}
        self._fits: dict[tuple[object, ...], str] = {}
        for rule in self.all_rules():
            if rule not in self.dropped:
                self.rules.setdefault(rule.stage, []).append(rule)

    def all_rules(self) -> Iterator[Rule]:
        """The rules of the demands that count and the catalog's own, whether dropped or not."""
        yield from (rule for rule in demand_rules(self.question) if rule.owner in self.kept)
        q = self.question
        fixed = q.demands.source in SOURCES and q.demands.label("source") in self.kept
        yield from catalog_rules(q, self.places, (q.demands.source,) if fixed else SOURCES)

    def any(self) -> bool:
        """Whether any set is left."""
        return next(self.sets(), None) is not None

    def sets(self) -> Iterator[Candidate]:
        """Every set up to the toolkit for which some choice of cuDNN and of NCCL holds, too."""
        for driver in self._drivers():
            for chosen in self._cudas(driver):
                if all(self._some(chosen, library) for library in ("cudnn", "nccl")):
                    yield chosen

    def _some(self, c: Candidate, library: str) -> bool:
        """Whether any choice of a library holds; that hangs on the toolkit and its origin alone."""
        known = (library, c.cuda, c.toolkit_source, c.os if c.toolkit_source == "debian" else "")
        if known not in self._judged:
            self._judged[known] = next(self.libraries(c, library), None) is not None
        return self._judged[known]

    def _holds(self, stage: str, c: Candidate) -> bool:
        return all(rule.holds(c) for rule in self.rules.get(stage, ()))

    def _drivers(self) -> Iterator[Candidate]:
        for os, arch in self.places:
            place = Candidate(os, arch)
            if not self._holds("place", place):
                continue
            for source in SOURCES:
                at = replace(place, source=source)
                if self._holds("source", at):
                    yield from self._branches(at, source)

    def _branches(self, at: Candidate, source: str) -> Iterator[Candidate]:
        q = self.question
        here = q.archive if q.os_label in self.kept else None
        if here is not None and not here.knows(main_packages(q, at.os, source), source):
            here = None
        for c in drivers(q.catalog, at):
            for exact in self._releases(c, here is not None):
                if self._holds("driver", exact):
                    yield exact

    def _releases(self, c: Candidate, known: bool) -> Iterator[Candidate]:
        """A driver with the host's own release and each in its archives; with none where they are not known.

        Where only some of its packages are known, a component of the archive is not switched on yet (non-free
        without contrib), and what it will hold is not known.
        """
        archive, source = self.question.archive, c.source or ""
        if archive is not None and c.names is not None and self.question.os_label in self.kept:
            own = archive.installed_release(c.names.lockstep, c.names.beside, source)
            if own is not None and major(own.version) == c.branch and self.question.demands.keep:
                yield replace(c, release=own, kept=True)
        if not known or archive is None or c.names is None:
            yield c
            return
        if not archive.of(c.names.main, source):
            return
        if all(archive.of(name, source) for name in (*c.names.lockstep, *c.names.beside)):
            for release in archive.releases(c.names.lockstep, c.names.beside, source, c.branch):
                yield replace(c, release=release)
        else:
            yield c

    def _cudas(self, c: Candidate) -> Iterator[Candidate]:
        for cuda in self._toolkits():
            if not self._allowed(cuda):
                continue
            fits = self._compatible(c, cuda)
            for toolkit_source in self._toolkit_sources(c, cuda):
                chosen = replace(c, cuda=cuda, toolkit_source=toolkit_source, compatibility=fits)
                if self._holds("cuda", chosen):
                    yield chosen

    def _toolkits(self) -> tuple[tuple[str, ...], ...]:
        """The choices of toolkits: those asked for, or each minor release by itself and none."""
        q = self.question
        names = {r.name for r in self.rules.get("cuda", ()) if r.owner is not None}
        wanted = tuple(v for v in q.demands.cuda or () if f"cuda-{v}" in names)
        return (wanted,) if wanted else (*((m,) for m in reversed(q.catalog.minors)), ())

    def _allowed(self, cuda: tuple[str, ...]) -> bool:
        """The demands' rules on toolkits, which look at nothing else: judged once for each choice."""
        known = ("cuda", cuda)
        if known not in self._judged:
            empty = Candidate("", "", cuda=cuda)
            rules = [r for r in self.rules.get("cuda", ()) if r.owner is not None]
            self._judged[known] = all(r.holds(empty) for r in rules)
        return self._judged[known]

    def _toolkit_sources(self, c: Candidate, cuda: tuple[str, ...]) -> tuple[str, ...]:
        known = (c.source, c.os, c.arch, cuda)
        if known not in self._origins:
            self._origins[known] = toolkit_sources(self.question, c, cuda)
        return self._origins[known]

    def _compatible(self, c: Candidate, cuda: tuple[str, ...]) -> str:
        q = self.question
        version = known_version(c, q)
        known = (c.branch, version, cuda)
        if known not in self._fits:
            cards = [g for label, g in q.gpus if label in self.kept]
            branch = q.catalog.branches[c.branch]
            found = [compatibility(q.catalog, branch, version, v, cards) for v in cuda]
            self._fits[known] = max(found, key=lambda name: RANK[name], default="native")
        return self._fits[known]

    def libraries(self, c: Candidate, library: str) -> Iterator[Candidate]:
        """The set with each choice of cuDNN or NCCL that holds, newest first; none at all comes last."""
        for version in (*releases_of(self.question, library), None):
            chosen = replace(c, cudnn=version) if library == "cudnn" else replace(c, nccl=version)
            if self._holds(library, chosen):
                yield chosen


def releases_of(q: Question, library: str) -> tuple[str, ...]:
    """Every release of cuDNN or NCCL for any CUDA major, newest first."""
    raw = q.catalog.raw
    known = {v for releases in raw[library]["releases"].values() for v in releases}
    known |= {r[library] for r in raw["packages"]["debian_libraries"] if r[library]}
    return tuple(sorted(known, key=number, reverse=True))


@lru_cache(maxsize=1024)
def drivers(of: Catalog, at: Candidate) -> tuple[Candidate, ...]:
    """Every branch with either flavour at a place and source, newest first, fitting or not."""
    found = []
    for branch in sorted(of.branches, reverse=True):
        for modules in ("open", "proprietary"):
            c = replace(at, branch=branch, modules=modules)
            found.append(replace(c, names=names_of(of, c)))
    return tuple(found)


def names_of(of: Catalog, c: Candidate) -> DriverPackages | None:
    """The package names of a candidate's driver, filled in; None where there are none for it."""
    place = of.distributions[c.os]
    for row in of.driver_packages:
        if (
            row.origin == c.source
            and row.modules == c.modules
            and place.family in row.family
            and row.first <= c.branch <= (row.last or c.branch)
            and (not row.os or c.os in row.os)
            and row.manager in {None, place.packages}
        ):
            return row.filled(c.branch)
    return None


def toolkit_sources(q: Question, c: Candidate, cuda: Sequence[str]) -> tuple[str, ...]:
    """Where these toolkits can come from: the distribution's archive, NVIDIA's repository; "" for nowhere."""
    if not cuda:
        return ("",)
    found = []
    own = debian_library(q, c.os)
    if c.source == "debian" and own and all(minor(v) == own["cuda"] for v in cuda):
        found.append("debian")
    place = q.catalog.distributions[c.os]
    if place.repo and c.arch in place.arches:
        held = all(
            not below(minor(v), place.cuda_first) and not above(minor(v), place.cuda_last) for v in cuda
        )
        if held and _offered(q, c, cuda):
            found.append("nvidia")
    return tuple(found) or ("",)


def _offered(q: Question, c: Candidate, cuda: Sequence[str]) -> bool:
    """False only where the host knows NVIDIA's toolkits and this one is not among them."""
    if q.archive is None or c.os != q.os:
        return True
    names = {v: "cuda-toolkit-{}-{}".format(*minor(v).split(".")) for v in (*q.catalog.minors, *cuda)}
    if not q.archive.knows(names.values(), "nvidia"):
        return True
    return all(q.archive.of(names[v], "nvidia") for v in cuda)
