"""The catalog's own rules: what fits together, whoever asks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .compatibility import NONE
from .demand_rules import cudnn_range
from .numbers import below, major, minor
from .question import Question
from .rules import Candidate, Rule


def catalog_rules(q: Question, places: Sequence[tuple[str, str]]) -> Iterator[Rule]:
    """Rules that no caller can relax. Their words speak of the given places (distribution, architecture)."""
    yield Rule("driver", _unreleased(q), (), lambda c: _released(c, q))
    yield Rule("driver", _repository(q, places), _repository_sources(q, places), lambda c: _carried(c, q))
    shipped = q.catalog.raw["drivers"]["branches"]
    yield Rule(
        "driver",
        "from R615 on the driver has open kernel modules only; before R515 proprietary ones only",
        _of_branches(q, (615, 620, 515)),
        lambda c: c.modules in q.catalog.branches[c.branch].modules,
    )
    yield Rule("driver", "the branch has packages for this distribution and these modules", (), lambda c: c.names is not None)
    yield Rule("driver", f"drivers for aarch64 servers: {_aarch64(q)}", ("guide590",), lambda c: c.arch == "x86_64" or q.catalog.branches[c.branch].aarch64)
    if shipped and q.archive is not None:
        yield Rule("driver", _offered(q), (), lambda c: not _covered(c, q) or c.release is not None)
    yield Rule("cuda", _floors(q), ("mvc", "fwd"), lambda c: c.compatibility != NONE)
    yield Rule("cuda", _toolkits(q, places), _repository_sources(q, places), lambda c: not c.cuda or c.toolkit_source != "")
    yield Rule("cudnn", "cuDNN needs a CUDA toolkit of its own major: 11 up to 9.10.2, 12 from 8.8, 13 from 9.12", ("cudnn_sm", "pypi_cudnn"), lambda c: _cudnn_fits(c, q))
    yield Rule("nccl", "NCCL is built for a CUDA major: 11 up to 2.21.5, 12 from 2.16.5, 13 from 2.27.7", ("pypi_nccl",), lambda c: c.nccl is None or bool(c.cuda))


def _of_branches(q: Question, branches: Sequence[int]) -> tuple[str, ...]:
    found = [s for b in branches if b in q.catalog.branches for s in q.catalog.branches[b].source]
    return tuple(dict.fromkeys(found))


def _unreleased(q: Question) -> str:
    late = [f"R{b.branch} ({b.first_date})" for b in q.catalog.branches.values() if b.first_date and b.first_date > q.today.isoformat()]
    return f"not released by {q.today.isoformat()}: {', '.join(late)}" if late else "the branch is released"


def _released(c: Candidate, q: Question) -> bool:
    first = q.catalog.branches[c.branch].first_date
    return first is None or first <= q.today.isoformat()


def carried_branches(q: Question, os: str, arch: str, source: str) -> tuple[int, ...]:
    """The branches that a source holds for a distribution and architecture."""
    if source == "nvidia":
        place = q.catalog.distributions[os]
        if place.repo is None or arch not in place.arches:
            return ()
        last = place.branch_last or max(q.catalog.branches)
        # A developer driver is in no repository.
        return tuple(b for b, row in q.catalog.branches.items() if place.branch_first <= b <= last and row.type != "DEV")
    for archive in q.catalog.archives:
        if archive.origin == source and archive.os == os and arch in archive.arches:
            return archive.branches
    return ()


def _carried(c: Candidate, q: Question) -> bool:
    return c.branch in carried_branches(q, c.os, c.arch, c.source or "")


def _repository(q: Question, places: Sequence[tuple[str, str]]) -> str:
    if len(places) > 2:
        own = sorted({b for a in q.catalog.archives for b in a.branches})
        return f"distributions' own archives hold no branch but {', '.join(f'R{b}' for b in own)}; NVIDIA's repositories hold all from their first on"
    parts = []
    for os, arch in places:
        name = q.catalog.distributions[os].name
        held = carried_branches(q, os, arch, "nvidia")
        text = f"R{held[0]} to R{held[-1]}" if held else "nothing"
        parts.append(f"NVIDIA's repository for {name} on {arch} holds {text}")
        for source in ("debian", "ubuntu"):
            branches = carried_branches(q, os, arch, source)
            if branches:
                parts.append(f"{name}'s own archive holds {', '.join(f'R{b}' for b in branches)}")
    return "; ".join(parts)


def _repository_sources(q: Question, places: Sequence[tuple[str, str]]) -> tuple[str, ...]:
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


def _covered(c: Candidate, q: Question) -> bool:
    return q.archive is not None and c.os == q.os and q.archive.knows(main_packages(q, c.os, c.source or ""), c.source or "")


def _offered(q: Question) -> str:
    assert q.archive is not None
    place = q.catalog.distributions[q.os]
    held = []
    for row in q.catalog.driver_packages:
        if place.family not in row.family or (row.os and q.os not in row.os) or row.manager not in {None, place.packages}:
            continue
        for branch in q.catalog.branches:
            if row.first <= branch <= (row.last or branch):
                names = [[n.format(branch=branch) for n in part] for part in (row.lockstep, row.beside)]
                held += [f"{r.version} ({row.modules})" for r in q.archive.releases(names[0], names[1], row.origin, branch)]
    return f"the host's archives offer {', '.join(dict.fromkeys(held)) or 'no driver that can be installed whole'}"


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
    if not c.cuda:
        return False
    row = cudnn_range(q, c.cudnn)
    toolkit = c.cuda[0]
    if row is None or major(toolkit) not in row.cuda:
        return False
    return not (major(toolkit) == 11 and below(minor(toolkit), row.cuda11_first))
