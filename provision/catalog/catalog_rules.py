"""The catalog's own rules: what fits together, whoever asks."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from .card_rules import cudnn_range
from .compatibility import NONE
from .numbers import below, major, minor
from .rules import Candidate, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from .question import Question
    from .tables import Catalog


def catalog_rules(q: Question, places: Sequence[tuple[str, str]], sources: Sequence[str]) -> Iterator[Rule]:
    """Rules that no caller can relax.

    Their words speak of the given places (distribution and architecture) and sources.
    """
    where = _place_sources(q, places)
    branches = q.catalog.branches
    yield Rule("released", "driver", lambda: _unreleased(q), (), lambda c: _released(c, q))
    yield Rule(
        "shipped",
        "driver",
        lambda: "from R615 on drivers have open kernel modules only, and before R515 proprietary ones only",
        _of_branches(q, (515, 615, 620)),
        lambda c: c.modules in branches[c.branch].modules,
    )
    yield Rule(
        "named",
        "driver",
        lambda: "the source has no packages of that branch with those modules",
        where,
        lambda c: c.names is not None,
    )
    yield Rule("carried", "driver", lambda: _carriers(q, places, sources), where, lambda c: _carried(c, q))
    yield Rule(
        "aarch64",
        "driver",
        lambda: f"branches for aarch64 servers: {_aarch64(q)}",
        ("guide590",),
        lambda c: c.arch == "x86_64" or branches[c.branch].aarch64,
    )
    yield Rule("runs", "cuda", lambda: _floors(q), ("mvc", "fwd"), lambda c: c.compatibility != NONE)
    yield Rule(
        "held", "cuda", lambda: _toolkits(q, places), where, lambda c: not c.cuda or c.toolkit_source != ""
    )
    yield Rule(
        "cudnn-major",
        "cudnn",
        lambda: "cuDNN is built for a CUDA major: 11 up to 9.10.2, 12 from 8.8 on, 13 from 9.12 on",
        ("cudnn_sm", "pypi_cudnn"),
        lambda c: _cudnn_fits(c, q),
    )
    yield Rule(
        "nccl-major",
        "nccl",
        lambda: "NCCL is built for a CUDA major: 11 up to 2.21.5, 12 from 2.16.5 on, 13 from 2.27.7 on",
        ("pypi_nccl",),
        lambda c: c.nccl is None or c.nccl in held_libraries(q, c, "nccl"),
    )


def _of_branches(q: Question, branches: Sequence[int]) -> tuple[str, ...]:
    found = [s for b in branches if b in q.catalog.branches for s in q.catalog.branches[b].source]
    return tuple(dict.fromkeys(found))


def _unreleased(q: Question) -> str:
    late = [
        f"R{b.branch} ({b.first_date})"
        for b in q.catalog.branches.values()
        if b.first_date and b.first_date > q.today.isoformat()
    ]
    return f"not released by {q.today.isoformat()}: {', '.join(late)}" if late else "the branch is released"


def _released(c: Candidate, q: Question) -> bool:
    first = q.catalog.branches[c.branch].first_date
    return first is None or first <= q.today.isoformat()


@lru_cache(maxsize=1024)
def carried_branches(of: Catalog, os: str, arch: str, source: str) -> tuple[int, ...]:
    """The branches that a source holds for a distribution and architecture."""
    if source == "nvidia":
        place = of.distributions[os]
        if place.repo is None or arch not in place.arches:
            return ()
        last = place.branch_last or max(of.branches)
        # A developer driver is in no repository.
        return tuple(
            b for b, row in of.branches.items() if place.branch_first <= b <= last and row.type != "DEV"
        )
    for archive in of.archives:
        if archive.origin == source and archive.os == os and arch in archive.arches:
            return archive.branches
    return ()


def _carried(c: Candidate, q: Question) -> bool:
    return c.branch in carried_branches(q.catalog, c.os, c.arch, c.source or "")


def _carriers(q: Question, places: Sequence[tuple[str, str]], sources: Sequence[str]) -> str:
    parts = []
    for os, arch in places[:2]:
        place = q.catalog.distributions[os]
        for source in sources:
            held = carried_branches(q.catalog, os, arch, source)
            if source == "nvidia":
                bound = " (inferred)" if place.weak("branch_first", "branch_last") else ""
                text = f"R{held[0]} to R{held[-1]}{bound}" if held else "nothing"
                parts.append(f"NVIDIA's repository for {place.name} on {arch} holds {text}")
            elif held or source in sources[:1]:
                text = ", ".join(f"R{b}" for b in held) or f"nothing of {source}"
                parts.append(f"{place.name}'s own archive holds {text}")
    return "; ".join(parts)


def _place_sources(q: Question, places: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    systems = {os for os, _ in places}
    found = [s for os in systems for s in q.catalog.distributions[os].source]
    found += [s for a in q.catalog.archives if a.os in systems for s in a.source]
    return tuple(sorted(set(found)))


def _aarch64(q: Question) -> str:
    return ", ".join(f"R{b}" for b, row in q.catalog.branches.items() if row.aarch64)


def main_packages(q: Question, os: str, source: str) -> tuple[str, ...]:
    """The packages by which one tells whether a host knows a source at all."""
    place = q.catalog.distributions[os]
    names = [
        row.main.format(branch=branch)
        for row in q.catalog.driver_packages
        if row.origin == source and place.family in row.family
        for branch in q.catalog.branches
        if row.first <= branch <= (row.last or branch)
    ]
    return tuple(dict.fromkeys(names))


def offered(q: Question) -> str:
    """What the host's archives hold whole, in words."""
    found = []
    if q.archive is not None:
        place = q.catalog.distributions[q.os]
        for row in q.catalog.driver_packages:
            fits = place.family in row.family and (not row.os or q.os in row.os)
            for branch in q.catalog.branches if fits and row.manager in {None, place.packages} else ():
                if row.first <= branch <= (row.last or branch):
                    names = row.filled(branch)
                    held = q.archive.releases(names.lockstep, names.beside, row.origin, branch)
                    found += [f"{release.version} ({row.modules})" for release in held]
    return f"the host's archives offer {', '.join(dict.fromkeys(found)) or 'no driver whole'}"


def _floors(q: Question) -> str:
    parts = [f"CUDA {f.major} needs a driver from {f.min} on" for f in q.catalog.floors if f.last is None]
    return "; ".join(parts) + "; forward-compatibility packages are for data center GPUs"


def _toolkits(q: Question, places: Sequence[tuple[str, str]]) -> str:
    systems = list(dict.fromkeys(os for os, _ in places))
    if len(systems) > 2:
        return "no repository holds the toolkit"
    parts = []
    for os in systems:
        place = q.catalog.distributions[os]
        last = f" to {place.cuda_last}" if place.cuda_last else " on"
        parts.append(f"NVIDIA's repository for {place.name} holds toolkits from {place.cuda_first}{last}")
    return "; ".join(parts)


def _cudnn_fits(c: Candidate, q: Question) -> bool:
    if c.cudnn is None:
        return True
    row = cudnn_range(c.cudnn, q.catalog.cudnn)
    if row is None or c.cudnn not in held_libraries(q, c, "cudnn"):
        return False
    toolkit = c.cuda[0]
    return major(toolkit) in row.cuda and not (
        major(toolkit) == 11 and below(minor(toolkit), row.cuda11_first)
    )


def held_libraries(q: Question, c: Candidate, library: str) -> tuple[str, ...]:
    """The releases of cuDNN or NCCL that are built for a candidate's default toolkit, oldest first."""
    if not c.cuda:
        return ()
    if c.toolkit_source == "debian":
        own = debian_library(q, c.os)
        return (own[library],) if own and own[library] else ()
    return q.catalog.releases(library, major(c.cuda[0]))


def debian_library(q: Question, os: str) -> Mapping[str, Any] | None:
    """Debian's own CUDA, cuDNN and NCCL of a release; None elsewhere."""
    rows = q.catalog.raw["packages"]["debian_libraries"]
    return next((r for r in rows if r["os"] == os), None)
