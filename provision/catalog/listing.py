"""The catalog as tables, for the command and for the page of the matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .gpus import all_gpus
from .numbers import major, minor, number
from .tables import Catalog, catalog

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from .rows import Branch, CudnnRange, Gpu


@dataclass(frozen=True)
class Listing:
    """A table: its columns, and rows of text cells."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def filtered(self, words: str) -> Listing:
        """The rows that hold every word, whatever its case, elsewhere than in the keys of their sources."""
        wanted = words.lower().split()
        told = [at for at, column in enumerate(self.columns) if column != "source"]

        def has_all(row: tuple[str, ...]) -> bool:
            text = " ".join(row[at] for at in told).lower()
            return all(word in text for word in wanted)

        return Listing(self.columns, tuple(filter(has_all, self.rows)))

    def as_dicts(self) -> list[dict[str, str]]:
        """One object a row, by column."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


def listing(subject: str, of: Catalog | None = None) -> Listing:
    """The table of a subject: one of SUBJECTS."""
    return SUBJECTS[subject](of or catalog())


def _status(row: Branch | Gpu | CudnnRange) -> str:
    if row.status != "seen":
        return row.status
    return f"seen; inferred: {', '.join(sorted(row.inferred))}" if row.inferred else "seen"


def _gpus(of: Catalog) -> Listing:
    known = None if of.is_default else of
    return Listing(
        (
            "id",
            "name",
            "architecture",
            "capability",
            "first driver",
            "last driver",
            "modules",
            "status",
            "source",
        ),
        tuple(
            (
                g.id,
                g.name,
                g.architecture,
                g.cc or "-",
                ", ".join(g.first),
                f"R{g.last}" if g.last else "-",
                " or ".join(g.modules),
                _status(g),
                " ".join(g.source),
            )
            for g in all_gpus(known)
        ),
    )


def _drivers(of: Catalog) -> Listing:
    return Listing(
        ("branch", "type", "first", "newest known", "end of support", "CUDA", "modules", "status", "source"),
        tuple(
            (
                f"R{b.branch}",
                b.type,
                b.first + (f" ({b.first_date})" if b.first_date else ""),
                (b.newest or "-") + (f" ({b.newest_date})" if b.newest_date else ""),
                b.eol or ("ended" if b.ended else "-"),
                b.max_cuda,
                ", ".join(b.modules),
                _status(b),
                " ".join(b.source),
            )
            for b in sorted(of.branches.values(), key=lambda b: -b.branch)
        ),
    )


def _floor_of(of: Catalog, version: str) -> str:
    rows = [f for f in of.floors if f.major == major(version) and number(f.first) <= number(minor(version))]
    rows = [f for f in rows if f.last is None or number(minor(version)) <= number(f.last)]
    return max(rows, key=lambda f: number(f.first)).min if rows else "-"


def _cuda(of: Catalog) -> Listing:
    return Listing(
        ("toolkit", "label", "driver wanted", "driver bundled", "compatible from", "status", "source"),
        tuple(
            (
                t.version,
                t.label,
                t.min or "-",
                t.bundled or "-",
                _floor_of(of, t.version),
                t.status + (f"; inferred: {', '.join(sorted(t.inferred))}" if t.inferred else ""),
                " ".join(t.source),
            )
            for t in reversed(of.toolkits)
        ),
    )


def _cudnn(of: Catalog) -> Listing:
    return Listing(
        ("cuDNN", "CUDA", "capability", "driver", "status", "source"),
        tuple(
            (
                f"{r.first} to {r.last or 'now'}" if r.first != r.last else r.first,
                ", ".join(map(str, r.cuda)),
                f"{r.cc_first} to {r.cc_last or 'newest'}",
                "; ".join(f"CUDA {m}: {v}" for m, v in r.driver.items()),
                _status(r),
                " ".join(r.source),
            )
            for r in reversed(of.cudnn)
        ),
    )


def _nccl(of: Catalog) -> Listing:
    raw = of.raw["nccl"]
    versions: Mapping[int, Sequence[str]] = raw["releases"]
    builds = {
        v: [b["cuda"] for b in raw["builds"] if b["version"] == v] for vs in versions.values() for v in vs
    }
    known = sorted(builds, key=number, reverse=True)
    state = raw["releases_status"]
    return Listing(
        ("NCCL", "CUDA", "package builds seen", "status", "source"),
        tuple(
            (
                v,
                ", ".join(str(m) for m, vs in versions.items() if v in vs),
                ", ".join(f"{v}-1+cuda{c}" for c in builds[v]) or "-",
                state["status"],
                " ".join(state["source"]),
            )
            for v in known
        ),
    )


SUBJECTS: Mapping[str, Callable[[Catalog], Listing]] = {
    "gpus": _gpus,
    "drivers": _drivers,
    "cuda": _cuda,
    "cudnn": _cudnn,
    "nccl": _nccl,
}
