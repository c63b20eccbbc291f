"""The caller's demands as rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .card_rules import card_rules
from .numbers import major, number, starts
from .rules import Candidate, Rule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .question import Question

MODULES = {"open": "open kernel modules", "proprietary": "proprietary kernel modules"}


def demand_rules(q: Question) -> Iterator[Rule]:
    """Every rule that a caller's demand brings in, owned by the words of that demand."""
    place = q.catalog.distributions[q.os]
    yield _rule(
        "os",
        "place",
        f"the host runs {place.name}",
        lambda c: c.os == q.os,
        q.os_label,
        "take another distribution",
    )
    yield _rule(
        "arch",
        "place",
        f"the host is {q.arch}",
        lambda c: c.arch == q.arch,
        q.arch_label,
        "take another architecture",
    )
    for label, gpu in q.gpus:
        yield from card_rules(q, label, gpu)
    yield from _source(q)
    yield from _driver(q)
    yield from _modules(q)
    yield from _cuda(q)
    yield from _libraries(q)


def _rule(
    name: str,
    stage: str,
    says: str,
    holds: Callable[[Candidate], bool],
    owner: str,
    relax: str,
    source: str = "caller",
) -> Rule:
    return Rule(name, stage, lambda: says, (source,), holds, owner, relax)


def _source(q: Question) -> Iterator[Rule]:
    demands = q.demands
    relax = "take the driver from another source"
    wanted = demands.source
    if wanted == "auto" and q.archive is not None and q.archive.installed:
        kept = q.archive.installed
        owner = demands.labels.get("source", f"--source auto (the host has {kept}'s packages)")
        says = f"the host already has driver packages of {kept}"
        yield _rule("source", "source", says, lambda c: c.source == kept, owner, relax, "host_driver")
    elif wanted == "rhel":
        yield _rule(
            "source",
            "source",
            "streams and version locks of RHEL are for RHEL and its kin",
            lambda c: c.source == "nvidia" and q.catalog.distributions[c.os].family == "rhel",
            demands.label("source"),
            relax,
            "km620",
        )
    elif wanted != "auto":
        says = f"the driver comes from {wanted}"
        yield _rule("source", "source", says, lambda c: c.source == wanted, demands.label("source"), relax)


def _driver(q: Question) -> Iterator[Rule]:
    if q.demands.driver is None:
        return
    text = q.demands.driver.removeprefix("R")
    branch, owner = major(text), q.demands.label("driver")
    relax = "take another driver branch"
    yield _rule("branch", "driver", f"the driver is R{branch}", lambda c: c.branch == branch, owner, relax)
    if "." in text:
        yield _rule(
            "release",
            "driver",
            f"the driver is {text}",
            lambda c: c.release is None or number(c.release.version) == number(text),
            owner,
            relax,
        )


def _modules(q: Question) -> Iterator[Rule]:
    wanted = q.demands.modules
    if wanted != "auto":
        says, relax = f"the driver has {MODULES[wanted]}", "leave the modules to the resolver"
        yield _rule(
            "modules", "driver", says, lambda c: c.modules == wanted, q.demands.label("modules"), relax
        )


def cuda_owner(q: Question, version: str) -> str:
    """The words in which a conflict names the demand for one toolkit."""
    return q.demands.labels.get("cuda", f"--cuda {version}")


def _cuda(q: Question) -> Iterator[Rule]:
    wanted = q.demands.cuda
    if wanted is None:
        return
    if not wanted:
        owner = q.demands.labels.get("cuda", "no CUDA toolkit")
        yield _rule("no-cuda", "cuda", "no CUDA toolkit", lambda c: c.cuda == (), owner, "allow a toolkit")
    for version in wanted:
        says, owner = f"CUDA {version} is asked for", cuda_owner(q, version)
        yield _rule(f"cuda-{version}", "cuda", says, _has(version), owner, "take another toolkit")


def _has(version: str) -> Callable[[Candidate], bool]:
    return lambda c: version in c.cuda


def _libraries(q: Question) -> Iterator[Rule]:
    cudnn, nccl = q.demands.cudnn, q.demands.nccl
    if cudnn is not None:
        says, owner = f"cuDNN {cudnn} is asked for", q.demands.label("cudnn")
        yield _rule(
            "cudnn",
            "cudnn",
            says,
            lambda c: c.cudnn is not None and starts(c.cudnn, cudnn),
            owner,
            "take another cuDNN",
        )
    if nccl is not None:
        says, owner = f"NCCL {nccl} is asked for", q.demands.label("nccl")
        yield _rule(
            "nccl",
            "nccl",
            says,
            lambda c: c.nccl is not None and starts(c.nccl, nccl),
            owner,
            "take another NCCL",
        )
