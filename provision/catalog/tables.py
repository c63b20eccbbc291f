"""The catalog as one value: the data files that ship with the project, with a site's own laid over them."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from ..errors import Usage
from ..yaml_text import read_yaml
from .numbers import minor, number
from .rows import (
    Architecture,
    Archive,
    Branch,
    Capability,
    CudnnRange,
    Distribution,
    DriverPackages,
    Floor,
    Preference,
    Toolkit,
    row_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

DATA = Path(__file__).with_name("data")
FILES = (
    "sources",
    "cuda",
    "drivers",
    "architectures",
    "cudnn",
    "nccl",
    "container",
    "distributions",
    "packages",
    "preference",
)
# Which field names a row, so that a site's row replaces the shipped one instead of standing beside it.
KEYS = {
    "toolkits": "version",
    "branches": "branch",
    "architectures": "name",
    "capabilities": "cc",
    "distributions": "os",
    "kin": "os",
    "order": "key",
    "never": "version",
}


def site_directories() -> tuple[Path, ...]:
    """Where a site's own rows lie, the machine's before the user's: later ones win."""
    home = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path("/etc/gpu-provision/catalog.d"), Path(home) / "gpu-provision" / "catalog.d"


@dataclass(frozen=True, eq=False)
class Catalog:
    """Parsed data files; typed rows are made when they are first asked for."""

    raw: Mapping[str, Mapping[str, Any]]
    directories: tuple[Path, ...] = (DATA,)
    is_default: bool = False

    @cached_property
    def toolkits(self) -> tuple[Toolkit, ...]:
        """Released toolkits, oldest first; previews are not among them."""
        rows = [
            row_of(Toolkit, {k: v for k, v in r.items() if k != "note"}) for r in self.raw["cuda"]["toolkits"]
        ]
        return tuple(sorted((r for r in rows if not r.preview), key=lambda r: number(r.version)))

    @cached_property
    def floors(self) -> tuple[Floor, ...]:
        return tuple(row_of(Floor, r) for r in self.raw["cuda"]["minor_version"])

    @cached_property
    def branches(self) -> Mapping[int, Branch]:
        rows = (row_of(Branch, r) for r in self.raw["drivers"]["branches"])
        return {r.branch: r for r in sorted(rows, key=lambda r: r.branch)}

    @cached_property
    def architectures(self) -> Mapping[str, Architecture]:
        return {r["name"]: row_of(Architecture, r) for r in self.raw["architectures"]["architectures"]}

    @cached_property
    def capabilities(self) -> Mapping[str, Capability]:
        return {r["cc"]: row_of(Capability, r) for r in self.raw["architectures"]["capabilities"]}

    @cached_property
    def chips(self) -> Mapping[str, Mapping[str, Any]]:
        return {chip: r for r in self.raw["architectures"]["chips"] for chip in r["chips"]}

    @cached_property
    def distributions(self) -> Mapping[str, Distribution]:
        return {r["os"]: row_of(Distribution, r) for r in self.raw["distributions"]["distributions"]}

    @cached_property
    def driver_packages(self) -> tuple[DriverPackages, ...]:
        return tuple(row_of(DriverPackages, r) for r in self.raw["packages"]["drivers"])

    @cached_property
    def archives(self) -> tuple[Archive, ...]:
        return tuple(row_of(Archive, r) for r in self.raw["packages"]["archives"])

    @cached_property
    def cudnn(self) -> tuple[CudnnRange, ...]:
        return tuple(row_of(CudnnRange, r) for r in self.raw["cudnn"]["ranges"])

    @cached_property
    def order(self) -> tuple[Preference, ...]:
        return tuple(Preference(r["key"], r["says"]) for r in self.raw["preference"]["order"])

    @cached_property
    def minors(self) -> tuple[str, ...]:
        """CUDA minor releases, oldest first."""
        return tuple(sorted({minor(t.version) for t in self.toolkits}, key=number))

    def releases(self, library: str, cuda_major: int) -> tuple[str, ...]:
        """What was published of cuDNN or NCCL for a CUDA major, oldest first."""
        return tuple(self.raw[library]["releases"].get(cuda_major, ()))

    def says(self, keys: Sequence[str]) -> str:
        """The documents behind some keys, for a person: title and address; `; ` stands only between two."""
        known = self.raw["sources"]
        found = (known[key] for key in dict.fromkeys(keys) if key in known)
        told = (f"{s['title']} <{s['url']}>" if "url" in s else s["title"] for s in found)
        return "; ".join(text.replace("; ", ", ") for text in told)


@cache
def catalog() -> Catalog:
    """The shipped catalog with the site's directories laid over it."""
    return replace(load((DATA, *site_directories())), is_default=True)


def load(directories: Sequence[Path]) -> Catalog:
    """Read the first directory whole and merge the others' files over it.

    Raises Usage, naming the file, where a site's file is no YAML mapping or has an unknown name.
    """
    base, *sites = directories
    raw: dict[str, dict[str, Any]] = {name: _read(base / f"{name}.yml") for name in FILES}
    used = [base]
    for site in sites:
        if not site.is_dir():
            continue
        used.append(site)
        for path in _files(site):
            if path.stem not in FILES:
                raise Usage(
                    f"{path}: the catalog has no file of that name",
                    do=f"Known: {', '.join(FILES)}, gpus.tsv.",
                )
            raw[path.stem] = _merge(raw[path.stem], _read(path))
    return Catalog(raw, tuple(used))


def _files(site: Path) -> Iterator[Path]:
    yield from sorted(p for p in site.iterdir() if p.suffix in {".yml", ".yaml"})


def _read(path: Path) -> dict[str, Any]:
    try:
        document = read_yaml(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as e:
        raise Usage(f"{path}: not readable as YAML: {e}") from e
    if not isinstance(document, dict):
        raise Usage(f"{path}: a catalog file is a mapping of lists")
    return document


def _merge(base: dict[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """A site's rows replace shipped ones of the same name, and stand before the others."""
    merged = dict(base)
    for section, rows in over.items():
        old = merged.get(section)
        if isinstance(old, list) and isinstance(rows, list):
            key = KEYS.get(section)
            named = {r[key] for r in rows} if key and all(key in r for r in rows) else set()
            merged[section] = [*rows, *(r for r in old if key is None or r.get(key) not in named)]
        elif isinstance(old, dict) and isinstance(rows, dict):
            merged[section] = {**old, **rows}
        else:
            merged[section] = rows
    return merged
