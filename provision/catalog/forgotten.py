"""What a maintainer forgets when a release is added: rows that other rows call for."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from ..recording.names import POLICY
from .compatibility import floor
from .numbers import above, below, major, minor, number

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .tables import Catalog


def forgotten(of: Catalog) -> Iterator[str]:
    """Rows that are called for and not there, one line each with what to add."""
    yield from _toolkits(of)
    yield from _majors(of)
    yield from _branches(of)
    yield from _distributions(of)
    yield from _names(of)


def _toolkits(of: Catalog) -> Iterator[str]:
    newest = max((b.max_cuda for b in of.branches.values()), key=number)
    for version in of.minors:
        if floor(of, version) is None:
            yield f"cuda.yml: CUDA {version} is in no row of minor_version"
        if above(version, newest):
            yield f"drivers.yml: no branch reports CUDA {version} (max_cuda), so it would never run by itself"


def _majors(of: Catalog) -> Iterator[str]:
    for own in sorted({major(v) for v in of.minors}):
        if not any(own in r.cuda for r in of.cudnn):
            yield f"cudnn.yml: no range for CUDA {own}"
        for library in ("cudnn", "nccl"):
            if not of.releases(library, own):
                yield f"{library}.yml: no release for CUDA {own}"
    for own, releases in of.raw["cudnn"]["releases"].items():
        for release in releases:
            fits = [
                r
                for r in of.cudnn
                if not below(minor(release), r.first) and not above(minor(release), r.last)
            ]
            if not any(own in r.cuda for r in fits):
                yield f"cudnn.yml: {release} for CUDA {own} is in no range"


def _branches(of: Catalog) -> Iterator[str]:
    families = {d.family for d in of.distributions.values()}
    for branch, family in product(of.branches.values(), sorted(families)):
        if branch.type == "DEV":
            continue
        for modules in branch.modules:
            rows = [r for r in of.driver_packages if r.origin == "nvidia" and family in r.family]
            if not any(
                r.modules == modules and r.first <= branch.branch <= (r.last or branch.branch) for r in rows
            ):
                yield f"packages.yml: no {modules} packages of R{branch.branch} for {family}"
    for version in of.capabilities.values():
        # A capability without an end has to be served by the newest toolkit.
        if version.last_cuda is None and above(version.first_cuda, of.minors[-1]):
            yield f"architectures.yml: {version.cc} needs CUDA {version.first_cuda}, which is not in cuda.yml"
    for archive in of.archives:
        for unknown in {*archive.branches, *archive.maintained} - set(of.branches):
            yield f"packages.yml archives: R{unknown} of {archive.os} is not in drivers.yml"


def _distributions(of: Catalog) -> Iterator[str]:
    for place in of.distributions.values():
        rows = of.raw["packages"]["libraries"]
        if not any(r["source"] == "nvidia" and place.family in r["family"] for r in rows):
            yield f"packages.yml: no names of CUDA, cuDNN and NCCL for {place.os} ({place.family})"
        if place.repo is not None and place.branch_first not in of.branches:
            yield f"distributions.yml {place.os}: branch_first R{place.branch_first} is not in drivers.yml"


def _names(of: Catalog) -> Iterator[str]:
    """A package that no recording asks apt for would make every host's archive look incomplete."""
    held = {(a.origin, b) for a in of.archives for b in a.branches}
    held |= {("nvidia", b.branch) for b in of.branches.values() if b.type != "DEV"}
    wanted = {"cuda-toolkit-{}-{}".format(*version.split(".")) for version in of.minors}
    for row in of.driver_packages:
        if {"debian", "ubuntu"} & set(row.family):
            for branch in (b for b in of.branches if row.first <= b <= (row.last or b)):
                if (row.origin, branch) in held:
                    names = row.filled(branch)
                    wanted |= {*names.lockstep, *names.beside}
    asked = set(POLICY)
    yield from (f"recording/names.py: POLICY does not ask for {name}" for name in sorted(wanted - asked))
