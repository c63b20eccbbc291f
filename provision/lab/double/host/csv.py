"""`nvidia-smi --query-gpu=... --format=csv[,noheader][,nounits]` and its sisters."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from .fields import GROUPS, SYNONYMS, known_fields
from .gpu import DEPRECATED, LOST, Gpu
from .nvml import INVALID, Refusal

if TYPE_CHECKING:
    from collections.abc import Callable

    from .fields import Value

# A lost GPU still says who it is.
STILL_KNOWN = (
    "name",
    "uuid",
    "serial",
    "index",
    "count",
    "driver_version",
    "timestamp",
    "pci.",
    "vbios",
    "compute_cap",
)


def query(gpus: list[Gpu], what: str, names: str, how: Format) -> str:
    """The table of `--query-gpu=NAMES` and its sisters. Raises Refusal for a field that is not known."""
    if what == "--query-gpu":
        return _gpus(gpus, names, how)
    if what == "--query-supported-clocks":
        return _supported_clocks(gpus, names, how)
    # Nothing ever runs on a double: the table of processes has a header and no rows.
    columns = [name.strip() for name in names.split(",")]
    return how.table([(name, "MiB" if "memory" in name else "") for name in columns], [])


def _gpus(gpus: list[Gpu], names: str, how: Format) -> str:
    fields = known_fields(gpus[0].branch)
    asked: list[str] = []
    for name in (part.strip() for part in names.split(",")):
        asked += GROUPS.get(name, [SYNONYMS.get(name, name)])
        if asked[-1] not in fields:
            raise Refusal(f'Field "{name}" is not a valid field to query.\n\n', INVALID)
    rows = []
    for gpu in gpus:
        row = []
        for name in asked:
            unit, read = fields[name]
            lost = gpu.fault("lost") and not name.startswith(STILL_KNOWN)
            row.append(how.text(LOST if lost else read(gpu), unit))
        rows.append(row)
    return how.table([(name, fields[name][0]) for name in asked], rows)


def _supported_clocks(gpus: list[Gpu], names: str, how: Format) -> str:
    """Each pair of memory and graphics clocks on a row."""
    short = {"mem": "memory", "gr": "graphics"}
    asked = [short.get(part.strip(), part.strip()) for part in names.split(",")]
    fixed: dict[str, Callable[[Gpu], str]] = {
        "timestamp": lambda gpu: time.strftime("%Y/%m/%d %H:%M:%S.000"),
        "gpu_name": lambda gpu: gpu.product,
        "gpu_bus_id": lambda gpu: gpu.bus_id,
        "gpu_serial": lambda gpu: str(gpu.gpu["serial"]),
        "gpu_uuid": lambda gpu: str(gpu.gpu["uuid"]),
    }
    for name in asked:
        if name not in (*fixed, "memory", "graphics"):
            raise Refusal(f'Field "{name}" is not a valid field to query.\n\n', INVALID)
    rows = []
    for gpu in gpus:
        for span in gpu.memory_clocks:
            for graphics in gpu.graphics_clocks(span["memory"]):
                clocks = {"memory": span["memory"], "graphics": graphics}
                rows.append(
                    [how.text(clocks[name], "MHz") if name in clocks else fixed[name](gpu) for name in asked]
                )
    units = [(name, "MHz" if name in ("memory", "graphics") else "") for name in asked]
    return how.table(units, rows)


class Format:
    """`--format=csv[,noheader][,nounits]`. Raises Refusal for a word it does not know, or without `csv`."""

    def __init__(self, text: str | None) -> None:
        if text is None:
            raise Refusal("\"--format=\" switch is missing. Please run 'nvidia-smi -h' for help.\n", INVALID)
        words = [word.strip() for word in text.split(",")]
        if not set(words) <= {"csv", "noheader", "nounits"}:
            raise Refusal("Format modifier is not recognized.\n", INVALID)
        if "csv" not in words:
            raise Refusal("Format modifier --format=csv is mandatory.\n", INVALID)
        self.header, self.units = "noheader" not in words, "nounits" not in words

    def text(self, value: Value, unit: str) -> str:
        if value is None:
            return "[N/A]"
        if isinstance(value, str):
            return f"[{value}]" if value in (DEPRECATED, LOST) else value
        number = f"{value:.2f}" if isinstance(value, float) else str(value)
        return f"{number} {unit}" if unit and self.units else number

    def table(self, columns: list[tuple[str, str]], rows: list[list[str]]) -> str:
        header = (
            [", ".join(f"{name} [{unit}]" if unit and self.units else name for name, unit in columns)]
            if self.header
            else []
        )
        return "".join(f"{line}\n" for line in [*header, *(", ".join(row) for row in rows)])
