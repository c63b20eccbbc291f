"""What a platform wants beside a host's own interfaces and ports: a topology file, relaxed ordering."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..facts.known import Unknown
from ..yaml_text import read_yaml
from .wanted import Why

if TYPE_CHECKING:
    from ..facts import Facts

_DATA = Path(__file__).parent.parent / "catalog" / "data" / "nccl_platforms.yml"
TOPOLOGY = "NCCL_TOPO_FILE"


@cache
def _rows() -> tuple[dict[str, Any], ...]:
    return tuple(read_yaml(_DATA.read_text(encoding="utf-8"))["platforms"])


def platform(facts: Facts) -> dict[str, Any] | None:
    """The row of the platform that the host is; None where it is none of those, or that is not known.

    A guest is told by its hypervisor and all of its cards: a part of such a machine has another topology.
    """
    virtualization, machine, smi = facts.virtualization, facts.machine, facts.smi
    if isinstance(virtualization, Unknown) or isinstance(machine, Unknown) or isinstance(smi, Unknown):
        return None
    names = [gpu.name for gpu in smi.gpus]
    for row in _rows():
        ours = [name for name in names if isinstance(name, str) and name.startswith(tuple(row["gpus"]))]
        if (
            virtualization.kind == row["virtualization"]
            and machine.get("sys_vendor") == row["vendor"]
            and len(ours) == len(names) == row["count"]
        ):
            return row
    return None


def settings(facts: Facts) -> tuple[dict[str, str], tuple[Why, ...]]:
    """Variables of the host's platform with their reasons; a topology file only where it is there."""
    row = platform(facts)
    if row is None:
        return {}, ()
    values: dict[str, str] = {}
    why: list[Why] = []
    for name, value in row["set"].items():
        values[name] = str(value)
        why.append(Why(name, f"{row['name']} wants it", row["source"]))
    path = next((path for path in row["topology"] if isinstance(facts.file(path), str)), None)
    if path is not None:
        values[TOPOLOGY] = path
        why.append(Why(TOPOLOGY, f"{row['name']} hides which GPU and NIC share a PCIe switch", row["source"]))
    else:
        says = f"not set: the image for {row['name']} has it at {row['topology'][0]}, and here it is not"
        why.append(Why(TOPOLOGY, says, row["source"]))
    return values, tuple(why)


def paths() -> tuple[str, ...]:
    """Every topology file that a row names."""
    return tuple(path for row in _rows() for path in row["topology"])
