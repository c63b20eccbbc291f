"""Packages and pins beside the driver: CUDA toolkit, cuDNN, NCCL, container toolkit, fabric manager."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .card_rules import known_version
from .catalog_rules import debian_library
from .numbers import major, minor, number, starts
from .stack import Part

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .question import Question
    from .rules import Candidate


def library_names(q: Question, c: Candidate) -> Mapping[str, Any]:
    """The row of packages.yml with the names in NVIDIA's repository of the host's family."""
    family = q.catalog.distributions[c.os].family
    rows = q.catalog.raw["packages"]["libraries"]
    found: Mapping[str, Any] = next(r for r in rows if r["source"] == "nvidia" and family in r["family"])
    return found


def _filled(names: list[str], toolkit: str) -> tuple[str, ...]:
    first, _, second = minor(toolkit).partition(".")
    return tuple(n.format(major=first, minor=second) for n in names)


def cuda_part(q: Question, c: Candidate, version: str) -> Part:
    """The toolkit, without the driver that the meta packages `cuda` and `cuda-X-Y` would bring."""
    if c.toolkit_source == "debian":
        return Part(minor(version), _debian(q, c, "cuda_packages"), source="debian")
    packages = _filled(library_names(q, c)["cuda"], version)
    pin = tuple(f"{p}={version}-*" for p in packages) if version.count(".") > 1 else _exact(q, packages, "")
    if c.compatibility == "forward":
        packages += _filled([q.catalog.raw["cuda"]["forward"]["package"]], version)
    return Part(version, packages, pin, "nvidia")


def _debian(q: Question, c: Candidate, key: str) -> tuple[str, ...]:
    own = debian_library(q, c.os)
    return tuple(own[key]) if own else ()


def _exact(q: Question, packages: tuple[str, ...], prefix: str) -> tuple[str, ...]:
    """`name=version` where the host's archives are known to have it."""
    if q.archive is None:
        return ()
    found = [(p, q.archive.newest(p, "nvidia", prefix)) for p in packages]
    return tuple(f"{p}={v}" for p, v in found if v)


def cudnn_part(q: Question, c: Candidate) -> Part:
    """cuDNN built for the toolkit's major, pinned: apt would take a newer one that may not serve the GPU."""
    assert c.cudnn is not None
    if c.toolkit_source == "debian":
        return Part(minor(c.cudnn), _debian(q, c, "cudnn_packages"), source="debian")
    names = library_names(q, c)["cudnn9" if major(c.cudnn) >= 9 else "cudnn8"]
    packages = _filled(names, c.cuda[0])
    shown = _shown(q, c, c.cudnn, "cudnn")
    if major(c.cudnn) >= 9:
        pin = _exact(q, packages, c.cudnn) or tuple(f"{p}={c.cudnn}-*" for p in packages)
    else:
        pin = tuple(f"{p}={c.cudnn}-1+cuda{major(c.cuda[0])}.*" for p in packages)
    return Part(shown, packages, pin, "nvidia")


def nccl_part(q: Question, c: Candidate) -> Part:
    """NCCL with the build suffix of the toolkit's major: `libnccl2=2.30.7-1+cuda12.9`."""
    assert c.nccl is not None
    if c.toolkit_source == "debian":
        return Part(minor(c.nccl), _debian(q, c, "nccl_packages"), source="debian")
    packages = tuple(library_names(q, c)["nccl"])
    own = major(c.cuda[0])
    built = [b for b in q.catalog.raw["nccl"]["builds"] if b["version"] == c.nccl and major(b["cuda"]) == own]
    suffix = max((b["cuda"] for b in built), key=number, default=f"{own}.*")
    pin = _exact(q, packages, f"{c.nccl}-1+cuda{own}.") or tuple(
        f"{p}={c.nccl}-1+cuda{suffix}" for p in packages
    )
    return Part(_shown(q, c, c.nccl, "nccl"), packages, pin, "nvidia")


def _shown(q: Question, c: Candidate, version: str, library: str) -> str:
    """The series; the whole release only where the caller asked for it or where newer ones do not fit."""
    demanded = getattr(q.demands, library)
    if demanded and demanded.count(".") > 1:
        return str(demanded)
    newest = q.catalog.releases(library, major(c.cuda[0]))[-1]
    if version != newest and not demanded:
        return ".".join(version.split(".")[:3])
    return minor(version)


def container_toolkit(q: Question) -> Part:
    """The container toolkit's four packages, which move together; it depends on no driver branch."""
    raw = q.catalog.raw["container"]
    known = sorted((r["version"] for r in raw["releases"]), key=number)
    packages = tuple(raw["packages"])
    wanted = q.demands.container_toolkit
    if wanted is None:
        return Part(minor(known[-1]), packages, _exact(q, packages, ""), "nvidia")
    version = max((v for v in known if starts(v, wanted)), key=number)
    exact = wanted.count(".") > 1
    pin = tuple(f"{p}={version}-*" if exact else f"{p}={wanted}.*" for p in packages)
    return Part(wanted, packages, pin, "nvidia")


def fabric_manager_row(q: Question, c: Candidate) -> Mapping[str, Any] | None:
    """The row that names the fabric manager's packages for a driver; None where its source has none.

    Where the switches are managed outside it is IMEX's row.
    """
    family = q.catalog.distributions[c.os].family
    for row in q.catalog.raw["packages"]["imex" if q.demands.imex else "fabric_manager"]:
        last = row["last"] or c.branch
        if row["source"] == c.source and family in row["family"] and row["first"] <= c.branch <= last:
            found: Mapping[str, Any] = row
            return found
    return None


def fabric_manager(q: Question, c: Candidate) -> Part | None:
    """The fabric manager of a host with NVSwitches: exactly the driver's version up to R615; or IMEX."""
    row = fabric_manager_row(q, c)
    if not (q.demands.nvswitch or q.demands.imex) or row is None:
        return None
    packages = tuple(p.format(branch=c.branch) for p in row["packages"])
    fifth = q.catalog.raw["packages"]["nvlink5"]
    newer = any(g.cc and number(g.cc) >= number(fifth["cc_first"]) for g in q.cards)
    beside = tuple(fifth["packages"]) if newer and not q.demands.imex else ()
    if "standalone" in row:
        # Releases of its own are lower than those of older branches, which apt would take by itself.
        own = _exact(q, packages, f"{major(row['standalone'])}.")
        return Part(row["standalone"], packages + beside, own, c.source or "")
    version = known_version(c, q)
    pin = tuple(f"{p}={_at(q, p, c.source or '', version)}" for p in packages) if version else ()
    return Part(version or str(c.branch), packages + beside, pin, c.source or "")


def _at(q: Question, package: str, source: str, release: str) -> str:
    """The package's version for a driver release: the archive's own where it is known to have one."""
    offered = q.archive.at(package, source, release) if q.archive else None
    return offered or f"{release}-*"
