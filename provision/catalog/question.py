"""One question to the resolver, checked: known GPUs, a known distribution, versions that exist."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

from ..errors import Usage
from .compatibility import toolkits
from .gpus import PciId, find
from .numbers import is_number, major, number, starts

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date

    from .demands import Demands
    from .offers import Offers
    from .rows import Gpu
    from .tables import Catalog

ARCHES = ("x86_64", "aarch64")
_ARCH_NAMES = {"amd64": "x86_64", "arm64": "aarch64", "sbsa": "aarch64", "arm64-sbsa": "aarch64"}


@dataclass(frozen=True)
class Question:
    """What is asked. `gpus` pairs each distinct GPU with the words in which a conflict names it."""

    gpus: tuple[tuple[str, Gpu], ...]
    os: str
    arch: str
    today: date
    archive: Offers | None
    demands: Demands
    catalog: Catalog

    @property
    def cards(self) -> tuple[Gpu, ...]:
        return tuple(gpu for _, gpu in self.gpus)

    @property
    def os_label(self) -> str:
        return self.demands.labels.get("os", f"--os {self.os}")

    @property
    def arch_label(self) -> str:
        return self.demands.labels.get("arch", f"--arch {self.arch}")


def ask(
    gpus: Sequence[str | PciId],
    os: str,
    arch: str,
    today: date,
    archive: Offers | None,
    demands: Demands,
    of: Catalog,
) -> Question:
    """Check the input. Raises Usage (exit code 2) with the nearest real names or versions."""
    named: dict[str, Gpu] = {}
    for wanted in gpus:
        gpu = find(wanted, None if of.is_default else of)
        text = str(wanted).strip()
        named.setdefault(f"{gpu.name} ({text})" if text.lower().startswith(("10de", "0x10de")) else text, gpu)
    _driver(demands, of)
    _cuda(demands, of)
    for library in ("cudnn", "nccl"):
        _library(library, demands, of)
    _container_toolkit(demands, of)
    return Question(
        tuple(named.items()), canonical_os(os, of), canonical_arch(arch), today, archive, demands, of
    )


def canonical_os(os: str, of: Catalog) -> str:
    """ID and VERSION_ID joined, from that or NVIDIA's repository code or the name of a rebuild (rocky9)."""
    text = os.strip().lower()
    if text in of.distributions:
        return text
    names = {d.repo: d.os for d in of.distributions.values() if d.repo}
    names |= {name: row["os"] for row in of.raw["distributions"]["kin"] for name in row["names"]}
    head = text.split(".")[0]
    for candidate in (text, head):
        if candidate in names:
            return names[candidate]
        if candidate in of.distributions:
            return candidate
    known = sorted(of.distributions)
    close = list(dict.fromkeys(get_close_matches(text, {*known, *names}, n=3)))
    hint = f"Nearest: {', '.join(close)}. " if close else ""
    raise Usage(f"{os}: the catalog has no such operating system", do=f"{hint}Known: {', '.join(known)}.")


def canonical_arch(arch: str) -> str:
    """x86_64 or aarch64, from those or the names that packages use."""
    text = _ARCH_NAMES.get(arch.lower(), arch.lower())
    if text not in ARCHES:
        raise Usage(f"{arch}: no architecture of NVIDIA's server drivers", do=f"Known: {', '.join(ARCHES)}.")
    return text


def _driver(demands: Demands, of: Catalog) -> None:
    if demands.driver is None:
        return
    label, text = demands.label("driver"), demands.driver.removeprefix("R")
    if not is_number(text):
        raise Usage(f"{label}: neither a branch (580) nor a release (580.95.05)")
    row = of.branches.get(major(text))
    if row is None:
        raise Usage(
            f"{label}: there is no driver branch {major(text)}",
            do=f"Nearest: {_around(str(major(text)), map(str, of.branches))}.",
        )
    if len(number(text).release) > 1 and number(text) < number(row.first):
        raise Usage(f"{label}: no such release: R{row.branch} begins with {row.first}")


def _cuda(demands: Demands, of: Catalog) -> None:
    for text in demands.cuda or ():
        label = demands.labels.get("cuda", f"--cuda {text}")
        if not is_number(text):
            raise Usage(f"{label}: no CUDA version (such as 13.0)")
        never = [r for r in of.raw["cuda"]["never"] if starts(text, r["version"])]
        if never or not toolkits(of, text):
            nearest = _around(text, [t.version for t in of.toolkits] if text.count(".") > 1 else of.minors)
            raise Usage(
                f"{label}: CUDA {text} was never released" + (f" ({never[0]['why']})" if never else ""),
                do=f"Nearest: {nearest}.",
            )


def _library(library: str, demands: Demands, of: Catalog) -> None:
    text = getattr(demands, library)
    if text is None:
        return
    known = sorted({v for releases in of.raw[library]["releases"].values() for v in releases}, key=number)
    if not is_number(text):
        raise Usage(f"{demands.label(library)}: no version number")
    if not any(starts(v, text) for v in known):
        shown = {".".join(v.split(".")[: max(2, text.count(".") + 1)]) for v in known}
        raise Usage(
            f"{demands.label(library)}: the catalog has no such release",
            do=f"Nearest: {_around(text, shown)}.",
        )


def _container_toolkit(demands: Demands, of: Catalog) -> None:
    text = demands.container_toolkit
    if text is None:
        return
    known = [r["version"] for r in of.raw["container"]["releases"]]
    if not is_number(text) or not any(starts(v, text) for v in known):
        nearest = _around(text, known) if is_number(text) else ", ".join(known)
        raise Usage(
            f"{demands.label('container_toolkit')}: the catalog has no such release",
            do=f"Nearest: {nearest}.",
        )


def _around(text: str, known: object) -> str:
    """The real numbers on both sides of one that is none."""
    numbers = sorted(set(known), key=number)  # type: ignore[call-overload]
    lower = [v for v in numbers if number(v) < number(text)]
    upper = [v for v in numbers if number(v) > number(text)]
    return ", ".join([*lower[-2:], *upper[:2]])
