"""Why each part of the set is what it is, each with its source."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from .card_rules import known_version, knows
from .catalog_rules import debian_library
from .compatibility import floor, toolkits, wanted_driver
from .libraries import fabric_manager_row
from .numbers import major
from .stack import Reason
from .support import support

if TYPE_CHECKING:
    from .question import Question
    from .rows import DriverPackages
    from .rules import Candidate

_TYPES = {"LTS": "long-term", "PB": "production", "NFB": "new-feature", "DEV": "developer"}


def reasons(q: Question, c: Candidate, minimum: str) -> tuple[Reason, ...]:
    """One reason for each choice, in the order in which a person would ask."""
    made = (
        *_source(q, c),
        *_driver(q, c, minimum),
        *_modules(q, c),
        *_cuda(q, c),
        *_libraries(q, c),
        *_beside(q, c),
    )
    return tuple(Reason(about, says, q.catalog.says(keys)) for about, says, keys in made)


_Made = Iterator[tuple[str, str, tuple[str, ...]]]


def _kinds(q: Question) -> str:
    found = list(dict.fromkeys(g.architecture for g in q.cards))
    return " and ".join(found) or "GPUs (none was named)"


def _source(q: Question, c: Candidate) -> _Made:
    place = q.catalog.distributions[c.os]
    where = f"repository {place.repo}" if c.source == "nvidia" else f"the archive of {place.name}"
    if q.demands.source != "auto":
        says = f"{where}, as asked for"
    elif q.archive is not None and q.archive.installed == c.source:
        says = f"{where}, where the host's present driver came from"
    elif c.source == "nvidia":
        says = f"{where}, where nothing else is asked for and the host has no driver of another source"
    else:
        says = f"{where}: NVIDIA's repository has no set that fits"
    yield "driver.source", says, place.source


def _driver(q: Question, c: Candidate, minimum: str) -> _Made:
    row = q.catalog.branches[c.branch]
    state = support(c.branch, os=c.os, source=c.source or "", today=q.today, of=q.catalog)
    standing = state.says if state else ""
    asked = ", as asked for" if q.demands.driver else ""
    yield (
        "driver.branch",
        f"R{c.branch} ({_TYPES[row.type]}) serves {_kinds(q)}{asked}; {standing}",
        row.source,
    )
    for gpu in q.cards:
        if gpu.last is not None and gpu.last == c.branch:
            yield (
                "driver.branch",
                f"R{gpu.last} is the last branch for {gpu.name} ({gpu.architecture})",
                gpu.source,
            )
    version = known_version(c, q)
    if c.kept:
        yield (
            "driver.version",
            f"{version}: the host has it, and it serves what is asked for",
            ("host_driver",),
        )
    elif c.release is not None:
        yield (
            "driver.version",
            f"{version}: the newest release that the host's archives hold whole for {c.modules} modules",
            ("host_archives",),
        )
    elif version is None:
        yield (
            "driver.version",
            f"any release of R{c.branch} from {minimum} on; what the archive offers is not known here",
            row.source,
        )
    for gpu in q.cards:
        if knows(gpu, c, q) == minimum and minimum != row.first:
            yield "driver.minimum", f"{gpu.name} is known to R{c.branch} from {minimum} on", gpu.source


def _modules(q: Question, c: Candidate) -> _Made:
    row = q.catalog.branches[c.branch]
    must = [g for g in q.cards if len(g.modules) == 1]
    if must:
        names = ", ".join(dict.fromkeys(g.name for g in must))
        yield "driver.modules", f"{names}: {c.modules} kernel modules only", must[0].source
    elif len(row.modules) == 1:
        yield "driver.modules", f"R{c.branch} has {c.modules} kernel modules only", row.source
    elif q.demands.modules != "auto":
        yield "driver.modules", f"{c.modules}, as asked for", ("km",)
    elif c.modules == "open":
        yield (
            "driver.modules",
            "every card runs with open kernel modules, which NVIDIA recommends from Turing on",
            ("km",),
        )
    elif c.kept:
        yield "driver.modules", f"the host has the driver with {c.modules} modules", ("host_driver",)
    elif (open_row := open_modules_unbuilt(q, c)) is not None:
        says = f"proprietary, as the archive has open ones too and {open_row.unbuilt}"
        yield "driver.modules", says, open_row.source
    elif c.release is not None:
        says = (
            f"the archives hold {c.release.version} with proprietary modules; the open ones are older there"
        )
        yield "driver.modules", says, ("km",)
    else:
        yield "driver.modules", f"the archive has R{c.branch} with proprietary modules only", row.source


def open_modules_unbuilt(q: Question, c: Candidate) -> DriverPackages | None:
    """The archive's open modules of the same branch, where they do not compile for its own kernels."""
    for row in q.catalog.driver_packages:
        here = row.origin == c.source and c.os in row.os and row.first <= c.branch <= (row.last or c.branch)
        if here and row.modules == "open" and row.unbuilt:
            return row
    return None


def _cuda(q: Question, c: Candidate) -> _Made:
    if not c.cuda:
        if q.demands.cuda is None:
            place = q.catalog.distributions[c.os]
            yield "cuda.version", "no toolkit that the repository holds serves these GPUs", place.source
        return
    q.catalog.branches[c.branch]
    for gpu in q.cards:
        last = q.catalog.capabilities[gpu.cc].last_cuda if gpu.cc else None
        if last:
            yield (
                "cuda.version",
                f"CUDA {last} is the last for {gpu.name}",
                q.catalog.capabilities[gpu.cc or ""].source,
            )
    for version in c.cuda:
        yield "cuda.version", *_toolkit(q, c, version)


def _toolkit(q: Question, c: Candidate, version: str) -> tuple[str, tuple[str, ...]]:
    row = q.catalog.branches[c.branch]
    asked = ", as asked for" if q.demands.cuda else ", the newest that fits"
    own = toolkits(q.catalog, version)[0].source
    wanted, lowest = wanted_driver(q.catalog, version), floor(q.catalog, version)
    if c.compatibility == "native":
        needs = f"it asks for a driver from {wanted} on" if wanted else "no minimum is published for it"
        says = f"CUDA {version}{asked}: R{c.branch} runs CUDA up to {row.max_cuda} by itself; {needs}"
        return says, tuple(dict.fromkeys((*own, *row.source)))
    if c.compatibility == "minor" and lowest:
        says = f"CUDA {version}{asked}: runs by minor-version compatibility from driver {lowest.min} on"
        return says, (*lowest.source, *(s for s in own if s not in lowest.source))
    return f"CUDA {version}{asked}: runs with forward-compatibility packages", ("fwd", *own)


def _libraries(q: Question, c: Candidate) -> _Made:
    own = debian_library(q, c.os) if c.toolkit_source == "debian" else None
    for name, title, version, keys in (
        ("cudnn", "cuDNN", c.cudnn, ("cudnn_sm", "pypi_cudnn")),
        ("nccl", "NCCL", c.nccl, ("pypi_nccl",)),
    ):
        if version is None:
            continue
        if own:
            says = f"{title} {version}: the one of {q.catalog.distributions[c.os].name}'s archive"
            yield f"{name}.version", says, tuple(own["from"])
        else:
            asked = ", as asked for" if getattr(q.demands, name) else ""
            says = f"{title} {version}{asked}: the newest known for CUDA {major(c.cuda[0])} and {_kinds(q)}"
            yield f"{name}.version", says, keys


def _beside(q: Question, c: Candidate) -> _Made:
    asked = (
        "as asked for" if q.demands.container_toolkit else "the newest series; it depends on no driver branch"
    )
    yield "container_toolkit.version", f"four packages of one release that move together, {asked}", ("ctk",)
    row = fabric_manager_row(q, c)
    if q.demands.nvswitch and row is not None:
        tie = (
            "a release of its own"
            if "standalone" in row
            else "exactly the driver's version, in its transaction"
        )
        yield "fabric_manager.version", f"the host has NVSwitches: {tie}", tuple(row["from"])
