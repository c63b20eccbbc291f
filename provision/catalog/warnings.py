"""What a set that works has as a catch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from .card_rules import known_version
from .compatibility import toolkits
from .libraries import fabric_manager_row
from .numbers import above, below, major, minor
from .stack import Warning_
from .support import support

if TYPE_CHECKING:
    from datetime import date

    from .question import Question
    from .rules import Candidate

_Made = Iterator[tuple[str, str, tuple[str, ...]]]


def warnings(q: Question, c: Candidate, minimum: str) -> tuple[Warning_, ...]:
    """All warnings of a set: what is at its end, what runs only by compatibility, what no document says."""
    made = (
        *_support(q, c),
        *_unbuilt(q, c),
        *_toolkit(q, c),
        *_releases(q, c),
        *_fabric(q, c),
        *_inferred(q, c, minimum),
    )
    return tuple(Warning_(kind, says, q.catalog.says(keys)) for kind, says, keys in dict.fromkeys(made))


def _unbuilt(q: Question, c: Candidate) -> _Made:
    if c.names is not None and c.names.unbuilt and not c.kept:
        yield "does-not-build", f"{c.modules} modules of R{c.branch}: {c.names.unbuilt}", c.names.source


def _months(today: date, until: date) -> int:
    return (until.year - today.year) * 12 + until.month - today.month


def _support(q: Question, c: Candidate) -> _Made:
    state = support(c.branch, os=c.os, source=c.source or "", today=q.today, of=q.catalog)
    if state is None:
        return
    if not state.nvidia:
        yield "end-of-life", state.says, state.source
    elif (
        state.until is not None
        and _months(q.today, state.until) <= q.catalog.raw["preference"]["ends_soon_months"]
    ):
        yield "ends-soon", f"NVIDIA's support of R{c.branch} ends on {state.until.isoformat()}", state.source


def _toolkit(q: Question, c: Candidate) -> _Made:
    row = q.catalog.branches[c.branch]
    if not c.cuda and q.demands.cuda is None:
        yield (
            "no-toolkit",
            "no toolkit of these repositories serves the GPUs on this distribution: use containers",
            q.catalog.distributions[c.os].source,
        )
    if c.compatibility == "minor":
        says = (
            f"CUDA {', '.join(c.cuda)} is newer than what R{c.branch} runs by itself ({row.max_cuda}): "
            "new features are missing, and PTX built with the newer toolkit does not run"
        )
        yield "minor-version-compat", says, ("mvc",)
    if c.compatibility == "forward":
        forward = q.catalog.raw["cuda"]["forward"]
        first, _, second = minor(c.cuda[0]).partition(".")
        path = forward["path"].format(major=first, minor=second)
        yield (
            "forward-compat",
            f"needs the forward-compatibility package and {path} on the library path; data center GPUs only",
            ("fwd",),
        )
        yield (
            "inferred",
            f"that the package accepts R{c.branch} as its base was not read in NVIDIA's table",
            ("fwd",),
        )
    if c.source == "debian" and c.toolkit_source == "nvidia":
        says = (
            "the toolkit comes from NVIDIA's repository beside Debian's driver: keep its driver "
            "packages away by a pin"
        )
        yield "second-source", says, ("guide590",)
    for version in c.cuda:
        yield from _update(q, c, version)


def _update(q: Question, c: Candidate, version: str) -> _Made:
    """The newest update of a toolkit may ask for a newer driver than its first release did."""
    exact = known_version(c, q)
    known = [t for t in toolkits(q.catalog, version) if t.min]
    if exact and known and c.compatibility == "native" and below(exact, known[-1].min):
        says = (
            f"CUDA {known[-1].version} asks for a driver from {known[-1].min} on; on {exact} it runs by "
            "minor-version compatibility"
        )
        yield "minor-version-compat", says, known[-1].source


def _releases(q: Question, c: Candidate) -> _Made:
    row = q.catalog.branches[c.branch]
    version, newest = known_version(c, q), row.newest
    if version and newest and above(version, newest):
        yield (
            "unlisted",
            f"{version} is newer than any release of R{c.branch} in the catalog ({newest})",
            row.source,
        )
    if c.release is None or c.names is None or q.archive is None:
        return
    if c.kept:
        held = q.archive.releases(c.names.lockstep, c.names.beside, c.source or "", c.branch)
        if held and above(held[-1].version, c.release.version):
            says = f"the archives offer {held[-1].version}; the host keeps {c.release.version} until asked"
            yield "update-available", says, ("host_archives",)
        return
    for offer in q.archive.of(c.names.main, c.source or ""):
        if offer.candidate and c.release.packages.get(c.names.main) != offer.version:
            says = f"{c.names.main} {offer.version} is there, but not the whole set in that version"
            yield "older-release", says, ("host_archives",)


def _fabric(q: Question, c: Candidate) -> _Made:
    if not q.demands.nvswitch:
        return
    row = fabric_manager_row(q, c)
    if row is None:
        place = q.catalog.distributions[c.os].name
        says = (
            f"the host has NVSwitches, and {place}'s archive has no fabric manager: without it CUDA does not "
            "start on them"
        )
        yield "fabric-manager", says, ("azhpc",)
    elif row["status"] != "seen":
        yield (
            "inferred",
            f"the fabric manager's packages for R{c.branch} were not read in a package list",
            tuple(row["from"]),
        )


def _inferred(q: Question, c: Candidate, minimum: str) -> _Made:
    """Only what the answer hangs on: a bound that was inferred counts where it is the one that decides."""
    row, place = q.catalog.branches[c.branch], q.catalog.distributions[c.os]
    if c.source == "nvidia" and c.branch == place.branch_first and place.weak("branch_first"):
        yield "inferred", f"that {place.repo} holds R{c.branch}", place.source
    if (
        c.toolkit_source == "nvidia"
        and any(minor(v) == place.cuda_first for v in c.cuda)
        and place.weak("cuda_first")
    ):
        yield "inferred", f"that {place.repo} holds CUDA {place.cuda_first}", place.source
    if c.arch == "aarch64" and row.weak("aarch64"):
        yield "inferred", f"that R{c.branch} serves aarch64", row.source
    for archive in q.catalog.archives:
        if (
            archive.origin == c.source
            and archive.os == c.os
            and archive.weak("branches")
            and c.release is None
        ):
            yield "inferred", f"which branches the archive of {place.name} holds", archive.source
    if c.names is not None and c.names.weak("lockstep", "main") and c.release is None:
        yield "inferred", "the names of the driver's packages", c.names.source
    if row.weak("max_cuda") and c.compatibility == "native" and any(minor(v) == row.max_cuda for v in c.cuda):
        yield "inferred", f"that R{c.branch} reports CUDA {row.max_cuda}", row.source
    if (row.eol and row.weak("eol")) or (row.ended and row.weak("ended")):
        yield "inferred", f"when support of R{c.branch} ended", row.source
    yield from _inferred_gpus(q, c, minimum)


def _inferred_gpus(q: Question, c: Candidate, minimum: str) -> _Made:
    for gpu in q.cards:
        if gpu.weak("first") and c.branch == major(gpu.first[0]):
            yield "inferred", f"that R{c.branch} knows {gpu.name}", gpu.source
        if gpu.weak("cc") and c.cuda:
            yield "inferred", f"the compute capability of {gpu.name} ({gpu.cc})", gpu.source
        capability = q.catalog.capabilities.get(gpu.cc) if gpu.cc else None
        if (
            capability
            and c.cuda
            and capability.weak("first_cuda")
            and minor(c.cuda[0]) == capability.first_cuda
        ):
            yield "inferred", f"that CUDA {capability.first_cuda} serves {gpu.name}", capability.source
        for special in q.catalog.raw["cudnn"]["capabilities"]:
            if c.cudnn and special["cc"] == gpu.cc and special["status"] != "seen":
                yield "inferred", f"that cuDNN {c.cudnn} serves {gpu.name}", tuple(special["source"])
        if c.compatibility == "forward" and gpu.weak("segment"):
            yield "inferred", f"that {gpu.name} counts as a data center GPU", gpu.source
    for version in c.cuda:
        found = toolkits(q.catalog, version)
        exact = version.count(".") > 1
        if found and all(t.weak("version") if exact else t.weak() for t in found):
            yield "inferred", f"that CUDA {version} was released", found[-1].source
