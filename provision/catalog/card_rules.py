"""What a GPU asks of the set: driver branches, kernel modules, CUDA and cuDNN releases."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .numbers import above, below, major, minor, number, starts
from .rules import Candidate, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .question import Question
    from .rows import CudnnRange, Gpu


def card_rules(q: Question, owner: str, gpu: Gpu) -> Iterator[Rule]:
    """The rules of one GPU, owned by the words in which the caller named it."""
    relax = f"move the {gpu.name} to another host"
    kind = f"{gpu.name} ({gpu.architecture})"
    yield Rule(
        "first-driver",
        "driver",
        lambda: f"{gpu.name} is known to drivers from {gpu.first[0]} on",
        gpu.source,
        lambda c: knows(gpu, c, q) is not None,
        owner,
        relax,
    )
    if gpu.last is not None:
        last = gpu.last
        says = f"R{last} is the last driver branch for {kind}"
        yield Rule(
            "last-driver", "driver", lambda: says, gpu.source, lambda c: c.branch <= last, owner, relax
        )
    if len(gpu.modules) == 1:
        only = gpu.modules[0]
        must = f"{kind} runs with {only} kernel modules only"
        yield Rule("modules", "driver", lambda: must, gpu.source, lambda c: c.modules == only, owner, relax)
    capability = q.catalog.capabilities.get(gpu.cc) if gpu.cc else None
    if capability is None:
        yield Rule(
            "cuda", "cuda", lambda: f"{kind} has no CUDA", gpu.source, lambda c: c.cuda == (), owner, relax
        )
        return
    what = f"{gpu.name} (compute capability {capability.cc})"
    first, last_cuda, where = capability.first_cuda, capability.last_cuda, capability.source
    yield Rule(
        "first-cuda",
        "cuda",
        lambda: f"CUDA {first} is the first for {what}",
        where,
        lambda c: not any(below(minor(v), first) for v in c.cuda),
        owner,
        relax,
    )
    if last_cuda is not None:
        yield Rule(
            "last-cuda",
            "cuda",
            lambda: f"CUDA {last_cuda} is the last for {what}",
            where,
            lambda c: not any(above(minor(v), last_cuda) for v in c.cuda),
            owner,
            relax,
        )
    yield _cudnn(q, owner, capability.cc, what, relax)


def _cudnn(q: Question, owner: str, cc: str, what: str, relax: str) -> Rule:
    special = next((r for r in q.catalog.raw["cudnn"]["capabilities"] if r["cc"] == cc), None)
    fits = [r for r in q.catalog.cudnn if not below(cc, r.cc_first) and not above(cc, r.cc_last)]

    def words() -> str:
        if special:
            return f"cuDNN {special['first']} is the first for {what}"
        if not fits:
            return f"no cuDNN in the catalog serves {what}"
        return f"cuDNN {fits[0].first} to {_end(q, fits[-1])} serve {what}"

    def holds(c: Candidate) -> bool:
        if c.cudnn is None:
            return True
        return not below(c.cudnn, special["first"]) if special else cudnn_range(c.cudnn, fits) is not None

    where = tuple(special["source"]) if special else tuple(dict.fromkeys(s for r in fits for s in r.source))
    return Rule("cudnn", "cudnn", words, where, holds, owner, relax)


def _end(q: Question, row: CudnnRange) -> str:
    """The last release of a range as people name it: 9.10 ends with 9.10.2."""
    releases = [v for known in q.catalog.raw["cudnn"]["releases"].values() for v in known]
    inside = [v for v in releases if row.last is None or starts(v, row.last)]
    return ".".join(max(inside, key=number).split(".")[:3])


def cudnn_range(cudnn: str, rows: Sequence[CudnnRange]) -> CudnnRange | None:
    """The support-matrix row of a release; None where none of these covers it."""
    for row in rows:
        if not below(minor(cudnn), row.first) and not above(minor(cudnn), row.last):
            return row
    return None


def knows(gpu: Gpu, c: Candidate, q: Question) -> str | None:
    """The oldest release of a candidate's branch that knows a GPU, "" where all do; None where none does."""
    if c.branch < major(gpu.first[0]):
        return None
    bound = next((f for f in gpu.first if "." in f and major(f) == c.branch), "")
    # Where the exact release is not known, one in the branch that is new enough will do.
    version = known_version(c, q) or q.catalog.branches[c.branch].newest
    return None if bound and version is not None and below(version, bound) else bound


def known_version(c: Candidate, q: Question) -> str | None:
    """The exact driver release where there is one: the archive's, or the one that the caller named."""
    if c.release is not None:
        return c.release.version
    text = (q.demands.driver or "").removeprefix("R")
    return text if "." in text and major(text) == c.branch else None
