"""Whether the rows are sound: `python -m provision.catalog.check` says what is wrong or forgotten."""

from __future__ import annotations

import itertools
import sys
from typing import TYPE_CHECKING, Any

from ..errors import Usage
from .forgotten import forgotten
from .gpus import all_gpus
from .numbers import above, below, is_number, major, number
from .preference import MEASURES
from .support import last_day
from .tables import Catalog, catalog

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_WITHOUT_ROWS = ("sources", "preference")


def problems(of: Catalog) -> Iterator[str]:
    """Everything that is wrong with the rows, and what a new release still lacks: one line each."""
    yield from _provenance(of)
    yield from _branches(of)
    yield from _toolkits(of)
    yield from _ranges(of)
    yield from _gpus(of)
    yield from (f"preference.yml: no measure {p.key}" for p in of.order if p.key not in MEASURES)
    yield from forgotten(of)


def _rows(of: Catalog) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every row with its place, `file section[number]`."""
    for name, document in of.raw.items():
        if name in _WITHOUT_ROWS:
            continue
        for section, rows in document.items():
            if isinstance(rows, list) and all(isinstance(r, dict) for r in rows):
                yield from ((f"{name}.yml {section}[{i}]", row) for i, row in enumerate(rows))
            elif isinstance(rows, dict) and "status" in rows:
                yield f"{name}.yml {section}", rows


def _provenance(of: Catalog) -> Iterator[str]:
    """A row says where it was read, and whether it was."""
    known = of.raw["sources"]
    for place, row in _rows(of):
        sources = row.get("from", row.get("source"))
        if not isinstance(sources, list) or not sources:
            yield f"{place}: no source"
            continue
        yield from (f"{place}: source {s} is not in sources.yml" for s in sources if s not in known)
        if row.get("status") not in ("seen", "inferred"):
            yield f"{place}: status is {row.get('status')!r}, not seen or inferred"
        yield from (f"{place}: inferred names no field: {f}" for f in row.get("inferred", ()) if f not in row)


def _branches(of: Catalog) -> Iterator[str]:
    for b in of.branches.values():
        name = f"drivers.yml R{b.branch}"
        if major(b.first) != b.branch or (b.newest and major(b.newest) != b.branch):
            yield f"{name}: a release of another branch"
        if below(b.newest or b.first, b.first):
            yield f"{name}: newest {b.newest} is older than first {b.first}"
        if b.eol and b.first_date and last_day(b.eol).isoformat() < b.first_date:
            yield f"{name}: end of life {b.eol} before the first release {b.first_date}"
        if not b.eol and not b.ended:
            yield f"{name}: neither eol nor ended"


def _toolkits(of: Catalog) -> Iterator[str]:
    for t in of.toolkits:
        name = f"cuda.yml {t.version}"
        if t.min and t.bundled and above(t.min, t.bundled):
            yield f"{name}: wants a newer driver ({t.min}) than it bundles ({t.bundled})"
        for driver in filter(None, (t.min, t.bundled)):
            if not is_number(driver) or major(driver) not in of.branches:
                yield f"{name}: driver {driver} is of no branch in drivers.yml"


def _ranges(of: Catalog) -> Iterator[str]:
    cudnn = [(r.first, r.last) for r in of.cudnn]
    yield from (f"cudnn.yml: ranges overlap at {v}" for v in _overlaps(cudnn))
    for own in {f.major for f in of.floors}:
        # A floor without an end reaches to the next one's beginning; two with the same beginning overlap.
        firsts = [f.first for f in of.floors if f.major == own]
        yield from (f"cuda.yml: two floors from {v} on" for v in set(firsts) if firsts.count(v) > 1)
    for table, kind in (("drivers", "modules"), ("fabric_manager", "source")):
        yield from _package_overlaps(of.raw["packages"][table], table, kind)


def _package_overlaps(rows: Sequence[Mapping[str, Any]], table: str, kind: str) -> Iterator[str]:
    groups: dict[tuple[object, ...], list[tuple[str, str | None]]] = {}
    for row in rows:
        for family in row["family"]:
            for os in row.get("os", ("any",)):
                key: tuple[object, ...] = (row["source"], row[kind], family, os, row.get("manager"))
                last = None if row["last"] is None else str(row["last"])
                groups.setdefault(key, []).append((str(row["first"]), last))
    for key, ranges in groups.items():
        where = " ".join(str(part) for part in key if part)
        yield from (f"packages.yml {table}: ranges of {where} overlap at R{v}" for v in _overlaps(ranges))


def _overlaps(ranges: Sequence[tuple[str, str | None]]) -> Iterator[str]:
    ordered = sorted(ranges, key=lambda r: number(r[0]))
    for (_, last), (first, _) in itertools.pairwise(ordered):
        if last is None or not below(last, first):
            yield first


def _gpus(of: Catalog) -> Iterator[str]:
    known = of.raw["sources"]
    try:
        gpus = list(all_gpus(None if of.is_default else of))
    except (Usage, KeyError, ValueError) as e:
        yield f"gpus.tsv: {e}"
        return
    for gpu in gpus:
        name = f"gpus.tsv {gpu.id} {gpu.name}"
        if gpu.cc is not None and gpu.cc not in of.capabilities:
            yield f"{name}: compute capability {gpu.cc} is not in architectures.yml"
        if gpu.segment not in {"D", "W", "C"}:
            yield f"{name}: segment {gpu.segment!r}"
        if gpu.last is not None and gpu.last < major(gpu.first[0]):
            yield f"{name}: last driver R{gpu.last} before the first {gpu.first[0]}"
        yield from (f"{name}: source {s} is not in sources.yml" for s in gpu.source if s not in known)


def main() -> int:
    """Print the problems; 0 where there are none."""
    found = list(problems(catalog()))
    print("\n".join(found) if found else "the catalog is sound")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
