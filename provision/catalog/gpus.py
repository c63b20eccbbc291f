"""GPUs by PCI id and by name: what nvidia-smi prints, what people say, what lspci shows."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cache
from typing import TYPE_CHECKING

from ..errors import Usage
from .numbers import number
from .rows import Gpu
from .tables import Catalog, catalog

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

_BRANDS = {"nvidia", "geforce", "tesla", "quadro", "corporation"}
_ID = re.compile(r"(?:0x)?10de:(?:0x)?([0-9a-f]{4})", re.IGNORECASE)
# nvidia-smi -q -x writes device and vendor in one: 20B210DE.
_XML_ID = re.compile(r"(?:0x)?([0-9a-f]{4})10de", re.IGNORECASE)
_OTHER_VENDOR = re.compile(r"(?:0x)?([0-9a-f]{4}):(?:0x)?[0-9a-f]{4}", re.IGNORECASE)
_COLUMNS = ("device", "name", "subs", "chip", "first", "status", "last", "modules", "segment", "source")


@dataclass(frozen=True)
class PciId:
    """`vendor:device` in hexadecimal without `0x`, as lspci shows them; `subsystem` where it is known."""

    vendor: str
    device: str
    subsystem: str | None = None

    def __str__(self) -> str:
        return f"{self.vendor}:{self.device}"


class UnknownGpu(Usage):
    """A GPU that the catalog does not have; it is never guessed."""


_Cells = tuple[str, ...]


@cache
def _rows(of: Catalog | None) -> Mapping[str, tuple[_Cells, ...]]:
    """The raw rows by device id; a site's rows replace all of the shipped ones of their device."""
    found: dict[str, dict[str, _Cells]] = {}
    for directory in (of or catalog()).directories:
        path = directory / "gpus.tsv"
        if not path.is_file():
            continue
        seen: set[str] = set()
        for line in path.read_text(encoding="utf-8").splitlines():
            if not line or line.startswith(("#", "device\t")):
                continue
            cells = tuple(line.split("\t"))
            if len(cells) != len(_COLUMNS):
                raise Usage(f"{path}: {len(cells)} columns instead of {len(_COLUMNS)}: {line[:60]}")
            device = cells[0].lower()
            if device not in seen:
                seen.add(device)
                found[device] = {}
            found[device][cells[1]] = cells
    return {device: tuple(names.values()) for device, names in found.items()}


@cache
def _gpu(row: _Cells, known: Catalog | None) -> Gpu:
    """One product; rows are made into values only when they are asked for, since there are many."""
    of = known or catalog()
    cells = dict(zip(_COLUMNS, row, strict=True))
    chip = of.chips.get(cells["chip"])
    if chip is None:
        raise Usage(f"gpus.tsv: {cells['device']}: chip {cells['chip']!r} is not in architectures.yml")
    architecture = of.architectures[chip["architecture"]]
    inferred = {"segment"}
    first = tuple(cells["first"].split())
    if not first:
        first = (str(chip.get("first") or architecture.first),)
        owner: object = "first" in (chip["inferred"] if "first" in chip else architecture.inferred)
        inferred |= {"first"} if owner else set()
    elif cells["status"] == "inferred":
        inferred.add("first")
    if "cc" in chip["inferred"]:
        inferred.add("cc")
    return Gpu(
        device=cells["device"].lower(),
        name=cells["name"],
        chip=cells["chip"],
        architecture=architecture.name,
        cc=chip["cc"],
        first=first,
        last=int(cells["last"]) if cells["last"] else architecture.last,
        modules=(cells["modules"],) if cells["modules"] else architecture.modules,
        segment=cells["segment"],
        status="seen",
        inferred=frozenset(inferred),
        source=(
            *cells["source"].split(),
            *(s for s in architecture.source if s not in cells["source"].split()),
        ),
    )


def find(wanted: str | PciId, of: Catalog | None = None) -> Gpu:
    """The product behind a name or PCI id.

    A short name that several products share (`A100`, `H100`) stands for the strictest of them where they
    differ in nothing but the first driver. Raises UnknownGpu with the nearest names, or with the news that
    the id is newer than the catalog; and Usage where a name stands for products of different kinds.
    """
    text = str(wanted).strip()
    if (
        isinstance(wanted, PciId)
        or _ID.fullmatch(text)
        or _XML_ID.fullmatch(text)
        or _OTHER_VENDOR.fullmatch(text)
    ):
        return _by_id(text, of)
    return _by_name(text, of)


def _by_id(text: str, of: Catalog | None) -> Gpu:
    match = _ID.fullmatch(text) or _XML_ID.fullmatch(text)
    if not match:
        raise UnknownGpu(
            f"{text}: not an NVIDIA device (vendor 10de)",
            do="Ids are vendor:device as `lspci -nn` shows them.",
        )
    device = match.group(1).lower()
    products = tuple(_gpu(row, of) for row in _rows(of).get(device, ()))
    if not products:
        raise UnknownGpu(
            f"10de:{device}: the catalog does not know this device; it may be newer than the catalog",
            do="Update gpu-provision, or add the device to catalog.d/gpus.tsv; nothing is guessed for it.",
        )
    return _strictest(products, f"10de:{device}")


def _words(name: str) -> tuple[str, ...]:
    words = re.findall(r"[a-z0-9]+", name.lower())
    kept = [w for w in words if w not in _BRANDS]
    return tuple(kept or words)


@cache
def _index(of: Catalog | None) -> Mapping[tuple[str, ...], tuple[_Cells, ...]]:
    found: dict[tuple[str, ...], list[_Cells]] = {}
    for rows in _rows(of).values():
        for row in rows:
            found.setdefault(_words(row[1]), []).append(row)
    return {words: tuple(rows) for words, rows in found.items()}


def _by_name(text: str, of: Catalog | None) -> Gpu:
    words = _words(text)
    index = _index(of)
    if not words:
        raise UnknownGpu(f"{text!r} is no GPU name")
    if words in index:
        # As printed, brand included, before the same words under another brand.
        bare = text.lower().removeprefix("nvidia ")
        printed = tuple(row for row in index[words] if row[1].lower().removeprefix("nvidia ") == bare)
        return _strictest(_listed(_made(printed or index[words], of)), text)
    glued = {"".join(key): key for key in index}
    if "".join(words) in glued:
        return _strictest(_made(index[glued["".join(words)]], of), text)
    longer = [row for key, rows in index.items() if key[: len(words)] == words for row in rows]
    if not longer:
        longer = [row for key, rows in index.items() if _holds(key, words) for row in rows]
    if longer:
        return replace(_strictest(_made(longer, of), text), name=text)
    raise UnknownGpu(f"{text}: no GPU of that name in the catalog", do=_nearest(text, of))


def _made(rows: Iterable[_Cells], of: Catalog | None) -> tuple[Gpu, ...]:
    return tuple(_gpu(row, of) for row in rows)


def _listed(products: Sequence[Gpu]) -> Sequence[Gpu]:
    """Those that a driver's own list has, where there are such: pci.ids also has what was never sold."""
    return [g for g in products if g.source[0] != "pciids"] or products


def _holds(key: tuple[str, ...], words: tuple[str, ...]) -> bool:
    return any(key[i : i + len(words)] == words for i in range(len(key) - len(words) + 1))


def _nearest(text: str, of: Catalog | None) -> str:
    names = {" ".join(key): rows[0][1] for key, rows in _index(of).items()}
    close = get_close_matches(" ".join(_words(text)), names, n=4, cutoff=0.5)
    if not close:
        return "`gpu-provision catalog gpus` lists all of them."
    return "Nearest: " + ", ".join(names[c] for c in close) + "."


def _strictest(products: Sequence[Gpu], asked: str) -> Gpu:
    kinds = {(g.architecture, g.cc, g.modules, g.last) for g in products}
    if len(kinds) > 1:
        names = sorted({f"{g.name} ({g.architecture}, {g.id})" for g in products})
        raise Usage(f"{asked}: stands for different GPUs", do="Say which: " + "; ".join(names[:8]) + ".")
    return max(products, key=lambda g: number(g.first[0]))


def all_gpus(of: Catalog | None = None) -> Iterator[Gpu]:
    """Every product, by device id."""
    for device in sorted(_rows(of)):
        yield from _made(_rows(of)[device], of)
