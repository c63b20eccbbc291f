"""Writes docs/presets.md from the presets themselves: `.venv/bin/python tools/presets_page.py`.

What a preset sets and why stands in its own file, inventory/group_vars/PRESET.yml, as comments above the
values; the hardware that it expects is data of the control host.hardware.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from provision.controls.reading import table

if TYPE_CHECKING:
    from collections.abc import Iterator

TREE = Path(__file__).parent.parent
PAGE = TREE / "docs" / "presets.md"
ORDER = ("dev", "research", "inference", "rendering", "training")
_HEAD = """\
# Presets

A preset is a ready profile: `--profile NAME`, or a group of that name in the inventory. What an inventory or
`--set` says comes before it. This page is made from the presets by `tools/presets_page.py`; do not edit it by
hand.

## Hardware

What jobs of each preset expect. `gpu-provision audit --profile NAME` tells in `host.hardware` where a host
has less; nothing is refused for it. The numbers' sources are in `provision/controls/data/presets.yml`.
"""
_COLUMNS = {
    "gpus": "GPUs",
    "gpu_memory_mib": "memory of each",
    "memory_ratio": "host memory for each GiB of GPU memory",
    "nvme": "NVMe disks",
    "network_gbit": "network",
    "rdma": "RDMA",
    "switched": "NVSwitches",
}
_FORMS = {"gpu_memory_mib": lambda v: f"{v / 1024:.0f} GiB", "network_gbit": lambda v: f"{v} Gbit/s"}


def page() -> str:
    """The whole page."""
    rows = table("presets")["presets"]
    lines = [_HEAD, f"| preset | {' | '.join(_COLUMNS.values())} |", "| --- " * (len(_COLUMNS) + 1) + "|"]
    lines += [
        f"| [`{name}`](#{name}) | {' | '.join(_cell(rows[name], c) for c in _COLUMNS)} |" for name in ORDER
    ]
    for name in ORDER:
        lines += ["", *_section(name)]
    return "\n".join(lines) + "\n"


def _cell(row: dict[str, Any], column: str) -> str:
    if column not in row:
        return ""
    value = row[column]
    return "yes" if value is True else _FORMS.get(column, str)(value)


def _section(name: str) -> Iterator[str]:
    """The file of a preset: its comments as text, its values as they stand."""
    yield f"## {name}"
    text = (TREE / "inventory" / "group_vars" / f"{name}.yml").read_text(encoding="utf-8")
    for block in text.removeprefix("---\n").strip().split("\n\n"):
        lines = block.splitlines()
        said = [line.removeprefix("#").strip() for line in lines if line.startswith("#")]
        values = [line for line in lines if not line.startswith("#")]
        if said:
            yield from ("", " ".join(said))
        if values:
            yield from ("", *(f"    {line}" for line in values))


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
