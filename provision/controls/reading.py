"""What controls of GPUs share: the cards that answer, one value of each, and the tables of thresholds.

Data with sources lies beside the controls, in data/*.yml.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ..facts.known import Unknown, Unsupported
from ..yaml_text import read_yaml
from .gpu import cards
from .model import Judged, Verdict, skipped, unknown

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..facts.smi_model import Gpu

T = TypeVar("T")
_DATA = Path(__file__).parent / "data"


@cache
def table(name: str) -> dict[str, Any]:
    """One data file of this room, without its ending."""
    return dict(read_yaml((_DATA / f"{name}.yml").read_text(encoding="utf-8")))


def gpus(host: Judged) -> tuple[Gpu, ...] | Verdict:
    """The GPUs that the driver tells of. nvidia-smi's word is enough where the bus was not recorded."""
    ours, smi = cards(host), host.facts.smi
    if isinstance(host.facts.pci, Unknown) and not isinstance(smi, Unknown) and smi.gpus:
        return smi.gpus
    if isinstance(ours, Verdict):
        return ours
    if isinstance(smi, Unknown):
        return unknown(smi)
    return smi.gpus if smi.gpus else unknown("nvidia-smi lists no GPU")


def called(gpu: Gpu) -> str:
    """`GPU 3 (0000:b3:00.0)`: the number that jobs use and the address that a technician needs."""
    return f"GPU {gpu.index} ({gpu.bus_id})"


@dataclass(frozen=True)
class Reading(Generic[T]):
    """One value of each GPU: those that are known, the first that should be and is not, and the reason why
    a GPU has no such value."""

    known: tuple[tuple[Gpu, T], ...]
    unclear: Unknown | None
    without: Unsupported | None

    def bad(self, is_bad: Callable[[T], bool]) -> tuple[tuple[Gpu, T], ...]:
        return tuple((gpu, value) for gpu, value in self.known if is_bad(value))

    @property
    def wanting(self) -> Verdict | None:
        """The verdict where nothing is wrong in what is known and that is not everything."""
        if self.unclear is not None:
            return unknown(self.unclear)
        if not self.known and self.without is not None:
            return skipped(self.without.reason)
        return None


def read(cards_: tuple[Gpu, ...], field: Callable[[Gpu], T | Unknown]) -> Reading[T]:
    known: list[tuple[Gpu, T]] = []
    unclear: Unknown | None = None
    without: Unsupported | None = None
    for gpu in cards_:
        value = field(gpu)
        if isinstance(value, Unsupported):
            without = value if without is None else without
        elif isinstance(value, Unknown):
            unclear = Unknown(f"{called(gpu)}: {value.reason}", value.item) if unclear is None else unclear
        else:
            known.append((gpu, value))
    return Reading(tuple(known), unclear, without)


def shared_kernel(host: Judged) -> Verdict | None:
    """A container shares its machine's kernel and hardware, of which nothing is judged from inside.

    Where the kind of machine was not recorded, what was recorded is taken for the host's own.
    """
    virtualization = host.facts.virtualization
    if not isinstance(virtualization, Unknown) and virtualization.shares_kernel:
        return skipped(f"kernel and hardware are another machine's ({virtualization.kind})")
    return None


def is_vm(host: Judged) -> bool:
    virtualization = host.facts.virtualization
    return not isinstance(virtualization, Unknown) and virtualization.is_vm
