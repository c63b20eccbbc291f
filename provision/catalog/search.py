"""Finding sets that satisfy rules: choices are made stage by stage, and each rule is judged as soon as it can be."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from .catalog_rules import catalog_rules, main_packages
from .compatibility import RANK, compatibility
from .demand_rules import demand_rules, known_version
from .numbers import above, below, major, minor
from .question import ARCHES, Question
from .rows import DriverPackages
from .rules import Candidate, Rule

SOURCES = ("nvidia", "debian", "ubuntu")


@dataclass
class Space:
    """The sets that some of a question's demands allow. `kept` holds the owners of the demands that count."""

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
        for rule in self.all_rules():
            if not any(rule is d or (rule.says, rule.owner) == (d.says, d.owner) for d in self.dropped):
                self.rules.setdefault(rule.stage, []).append(rule)

    def all_rules(self) -> Iterator[Rule]:
        for rule in demand_rules(self.question):
            if rule.owner in self.kept:
                yield rule
        yield from catalog_rules(self.question, self.places)

    def any(self) -> bool:
        """Whether any set is left."""
        return next(self.sets(), None) is not None

    def sets(self) -> Iterator[Candidate]:
        """Every set up to the toolkit for which some cuDNN and NCCL choice holds, too."""
        for drivers in self._drivers():
            for chosen in self._cudas(drivers):
                if next(self.libraries(chosen, "cudnn"), None) and next(self.libraries(chosen, "nccl"), None):
                    yield chosen

    def _holds(self, stage: str, c: Candidate) -> bool:
        return all(rule.holds(c) for rule in self.rules.get(stage, ()))

    def _drivers(self) -> Iterator[Candidate]:
        q = self.question
        for os, arch in self.places:
            place = Candidate(os, arch)
            if not self._holds("place", place):
                continue
            for source in SOURCES:
                at = place.with_(source=source)
                if self._holds("source", at):
                    yield from self._branches(q, at)

    def _branches(self, q: Question, at: Candidate) -> Iterator[Candidate]:
        here = q.archive if at.os == q.os and q.os_label in self.kept else None
        covered = here is not None and here.knows(main_packages(q, at.os, at.source or ""), at.source or "")
        for branch in q.catalog.branches:
            for modules in ("open", "proprietary"):
                c = at.with_(branch=branch, modules=modules)
                names = names_of(q, c)
                c = c.with_(names=names)
                if here is None or not covered or names is None:
                    if self._holds("driver", c):
                        yield c
                    continue
                for release in here.releases(names.lockstep, names.beside, at.source or "", branch):
                    exact = c.with_(release=release)
                    if self._holds("driver", exact):
                        yield exact

    def _cudas(self, c: Candidate) -> Iterator[Candidate]:
        q = self.question
        wanted = q.demands.cuda
        owners = {q.demands.labels.get("cuda", f"--cuda {v}") for v in wanted or ()}
        choices: list[tuple[str, ...]] = [(m,) for m in q.catalog.minors] + [()]
        if wanted and owners <= set(self.kept):
            choices = [wanted]
        elif wanted:
            choices += [tuple(v for v in wanted if q.demands.labels.get("cuda", f"--cuda {v}") in self.kept)]
        for cuda in choices:
            for toolkit_source in toolkit_sources(q, c, cuda):
                chosen = c.with_(cuda=cuda, toolkit_source=toolkit_source, compatibility=self._compatible(c, cuda))
                if self._holds("cuda", chosen):
                    yield chosen

    def _compatible(self, c: Candidate, cuda: Sequence[str]) -> str:
        q = self.question
        branch, version = q.catalog.branches[c.branch], known_version(c, q)
        cards = [g for label, g in q.gpus if label in self.kept]
        found = [compatibility(q.catalog, branch, version, v, cards) for v in cuda]
        return max(found, key=lambda name: RANK[name], default="native")

    def libraries(self, c: Candidate, library: str) -> Iterator[Candidate]:
        """The set with each choice of cuDNN or NCCL that holds, newest first; none at all comes last."""
        for version in (*reversed(published(self.question, c, library)), None):
            chosen = c.with_(cudnn=version) if library == "cudnn" else c.with_(nccl=version)
            if self._holds(library, chosen):
                yield chosen


def names_of(q: Question, c: Candidate) -> DriverPackages | None:
    """The package names of a candidate's driver, filled in; None where there are none for it."""
    place = q.catalog.distributions[c.os]
    for row in q.catalog.driver_packages:
        if (
            row.origin == c.source
            and row.modules == c.modules
            and place.family in row.family
            and row.first <= c.branch <= (row.last or c.branch)
            and (not row.os or c.os in row.os)
            and row.manager in {None, place.packages}
        ):
            return fill(row, c.branch)
    return None


def fill(row: DriverPackages, branch: int) -> DriverPackages:
    """A row of packages.yml with the branch in its names."""
    from dataclasses import replace

    def named(names: Sequence[str]) -> tuple[str, ...]:
        return tuple(n.format(branch=branch) for n in names)

    return replace(
        row, main=row.main.format(branch=branch), lockstep=named(row.lockstep), beside=named(row.beside), pin=named(row.pin)
    )


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
        held = all(not below(minor(v), place.cuda_first) and not above(minor(v), place.cuda_last) for v in cuda)
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


def debian_library(q: Question, os: str):  # type: ignore[no-untyped-def]
    """Debian's own CUDA, cuDNN and NCCL of a release; None elsewhere."""
    return next((r for r in q.catalog.raw["packages"]["debian_libraries"] if r["os"] == os), None)


def published(q: Question, c: Candidate, library: str) -> tuple[str, ...]:
    """The releases of cuDNN or NCCL that a candidate's default toolkit could have, oldest first."""
    if not c.cuda:
        return ()
    if c.toolkit_source == "debian":
        own = debian_library(q, c.os)
        return (own[library],) if own and own[library] else ()
    return q.catalog.releases(library, major(c.cuda[0]))
