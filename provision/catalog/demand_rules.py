"""The caller's demands as rules."""

from __future__ import annotations

from collections.abc import Iterator

from .numbers import above, below, major, minor, number, starts
from .question import Question
from .rows import Gpu
from .rules import Candidate, Rule

_MODULES = {"open": "open kernel modules", "proprietary": "proprietary kernel modules"}


def demand_rules(q: Question) -> Iterator[Rule]:
    """Every rule that a caller's demand brings in, owned by the words of that demand."""
    yield Rule("place", f"the host runs {q.catalog.distributions[q.os].name}", (), lambda c: c.os == q.os, q.os_label, "take another distribution")
    yield Rule("place", f"the host is {q.arch}", (), lambda c: c.arch == q.arch, q.arch_label, "take a machine of another architecture")
    for label, gpu in q.gpus:
        yield from _gpu(q, label, gpu)
    yield from _source(q)
    yield from _driver(q)
    yield from _cuda(q)
    yield from _libraries(q)


def _gpu(q: Question, owner: str, gpu: Gpu) -> Iterator[Rule]:
    relax = f"move the {gpu.name} to another host"
    known = f"{gpu.name} is known to drivers from {gpu.first[0]} on"
    yield Rule("driver", known, gpu.source, lambda c: knows(gpu, c, q) is not None, owner, relax)
    if gpu.last is not None:
        last, kind = gpu.last, f"{gpu.name} ({gpu.architecture})"
        yield Rule("driver", f"R{last} is the last driver branch for {kind}", gpu.source, lambda c: c.branch <= last, owner, relax)
    if len(gpu.modules) == 1:
        only = gpu.modules[0]
        says = f"{gpu.name} ({gpu.architecture}) runs with {_MODULES[only]} only"
        yield Rule("driver", says, gpu.source, lambda c: c.modules == only, owner, relax)
    yield from _gpu_libraries(q, owner, gpu, relax)


def _gpu_libraries(q: Question, owner: str, gpu: Gpu, relax: str) -> Iterator[Rule]:
    capability = q.catalog.capabilities.get(gpu.cc) if gpu.cc else None
    if capability is None:
        yield Rule("cuda", f"{gpu.name} ({gpu.architecture}) has no CUDA", gpu.source, lambda c: c.cuda == (), owner, relax)
        return
    first, last, where = capability.first_cuda, capability.last_cuda, capability.source
    what = f"{gpu.name} (compute capability {capability.cc})"
    yield Rule(
        "cuda", f"CUDA {first} is the first for {what}", where, lambda c: not any(below(minor(v), first) for v in c.cuda), owner, relax
    )
    if last is not None:
        yield Rule(
            "cuda", f"CUDA {last} is the last for {what}", where, lambda c: not any(above(minor(v), last) for v in c.cuda), owner, relax
        )
    yield from _gpu_cudnn(q, owner, capability.cc, what, relax)


def _gpu_cudnn(q: Question, owner: str, cc: str, what: str, relax: str) -> Iterator[Rule]:
    special = next((r for r in q.catalog.raw["cudnn"]["capabilities"] if r["cc"] == cc), None)
    where = tuple(special["source"]) if special else q.catalog.cudnn[-1].source

    def holds(c: Candidate) -> bool:
        return c.cudnn is None or serves_capability(q, c.cudnn, cc)

    if special:
        says = f"cuDNN {special['first']} is the first for {what}"
    else:
        fits = [r for r in q.catalog.cudnn if not below(cc, r.cc_first) and not above(cc, r.cc_last)]
        ends = f"{fits[0].first} to {_last(q, fits[-1].last)}" if fits else "none"
        says = f"cuDNN releases for {what}: {ends}"
    yield Rule("cudnn", says, where, holds, owner, relax)


def _last(q: Question, last: str | None) -> str:
    """The last release of a range as people name it: 9.10 ends with 9.10.2."""
    if last is None:
        return "now"
    known = [v for vs in q.catalog.raw["cudnn"]["releases"].values() for v in vs if starts(v, last)]
    return ".".join(max(known, key=number).split(".")[:3]) if known else last


def serves_capability(q: Question, cudnn: str, cc: str) -> bool:
    """Whether a cuDNN release serves a compute capability (NVIDIA cuDNN support matrix)."""
    for special in q.catalog.raw["cudnn"]["capabilities"]:
        if special["cc"] == cc:
            return not below(cudnn, special["first"])
    row = cudnn_range(q, cudnn)
    return row is not None and not below(cc, row.cc_first) and not above(cc, row.cc_last)


def cudnn_range(q: Question, cudnn: str):  # type: ignore[no-untyped-def]
    """The support-matrix row of a release; None outside all of them."""
    for row in q.catalog.cudnn:
        if not below(minor(cudnn), row.first) and not above(minor(cudnn), row.last):
            return row
    return None


def knows(gpu: Gpu, c: Candidate, q: Question) -> str | None:
    """The oldest release of a candidate's branch that knows a GPU ("" where every one does); None where none does."""
    lowest = gpu.first[0]
    if c.branch < major(lowest):
        return None
    bound = next((f for f in gpu.first if major(f) == c.branch and f.count(".")), "")
    version = known_version(c, q)
    if bound and version is not None and below(version, bound):
        return None
    newest = q.catalog.branches[c.branch].newest
    if bound and version is None and newest is not None and below(newest, bound):
        return None
    return bound


def known_version(c: Candidate, q: Question) -> str | None:
    """The exact driver release where there is one: the archive's, or the one that the caller named."""
    if c.release is not None:
        return c.release.version
    text = (q.demands.driver or "").removeprefix("R")
    return text if "." in text and major(text) == c.branch else None


def _source(q: Question) -> Iterator[Rule]:
    demands = q.demands
    relax = "take the driver from another source"
    if demands.source == "auto" and q.archive is not None and q.archive.installed:
        kept = q.archive.installed
        owner = demands.labels.get("source", f"--source auto (the host has {kept}'s packages)")
        yield Rule("source", f"the host already has driver packages of {kept}", (), lambda c: c.source == kept, owner, relax)
    elif demands.source == "rhel":
        yield Rule(
            "source",
            "streams and version locks of RHEL are for RHEL and its kin",
            (),
            lambda c: c.source == "nvidia" and q.catalog.distributions[c.os].family == "rhel",
            demands.label("source"),
            relax,
        )
    elif demands.source != "auto":
        wanted = demands.source
        yield Rule("source", f"the driver comes from {wanted}", (), lambda c: c.source == wanted, demands.label("source"), relax)


def _driver(q: Question) -> Iterator[Rule]:
    demands = q.demands
    if demands.driver is not None:
        text = demands.driver.removeprefix("R")
        branch = major(text)
        owner, relax = demands.label("driver"), "take another driver branch"
        yield Rule("driver", f"the driver is R{branch}", (), lambda c: c.branch == branch, owner, relax)
        if "." in text:
            yield Rule(
                "driver",
                f"the driver is {text}",
                (),
                lambda c: c.release is None or number(c.release.version) == number(text),
                owner,
                "take another release of the branch",
            )
    if demands.modules != "auto":
        wanted = demands.modules
        says = f"the driver has {_MODULES[wanted]}"
        yield Rule("driver", says, (), lambda c: c.modules == wanted, demands.label("modules"), "leave the modules to the resolver")


def _cuda(q: Question) -> Iterator[Rule]:
    wanted = q.demands.cuda
    if wanted is None:
        return
    if not wanted:
        owner = q.demands.labels.get("cuda", "no CUDA toolkit")
        yield Rule("cuda", "no CUDA toolkit", (), lambda c: c.cuda == (), owner, "allow a toolkit")
    for version in wanted:
        owner = q.demands.labels.get("cuda", f"--cuda {version}")
        yield Rule("cuda", f"CUDA {version} is there", (), _has(version), owner, "take another toolkit")


def _has(version: str):  # type: ignore[no-untyped-def]
    return lambda c: version in c.cuda


def _libraries(q: Question) -> Iterator[Rule]:
    cudnn, nccl = q.demands.cudnn, q.demands.nccl
    if cudnn is not None:
        yield Rule(
            "cudnn",
            f"cuDNN {cudnn} is there",
            (),
            lambda c: c.cudnn is not None and starts(c.cudnn, cudnn),
            q.demands.label("cudnn"),
            "take another cuDNN",
        )
    if nccl is not None:
        yield Rule(
            "nccl",
            f"NCCL {nccl} is there",
            (),
            lambda c: c.nccl is not None and starts(c.nccl, nccl),
            q.demands.label("nccl"),
            "take another NCCL",
        )
