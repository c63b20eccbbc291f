"""`nvidia-smi -q -x`: the document of each branch, tabs and all."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from .document import gpu_document
from .gpu import CUDA, Gpu
from .world import MARK

if TYPE_CHECKING:
    from .readings import Node


def cuda_version(branch: int) -> str:
    """What the branch reports; of branches in between, that of the one before."""
    return CUDA[max((known for known in CUDA if known <= branch), default=min(CUDA))]


def dtd(branch: int) -> int:
    """Version of the document type (read in captures: 11 from 460 to 516, 12 from 525 to 570, 13 from
    580).
    """
    return 13 if branch >= 580 else 12 if branch >= 525 else 11 if branch >= 460 else 10


def xml_document(all_gpus: list[Gpu], shown: list[Gpu]) -> str:
    branch = all_gpus[0].branch
    lines = [
        '<?xml version="1.0" ?>',
        f'<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v{dtd(branch)}.dtd">',
        f"<!-- {MARK} -->",
        "<nvidia_smi_log>",
        f"\t<timestamp>{time.strftime('%a %b %e %H:%M:%S %Y')}</timestamp>",
        f"\t<driver_version>{all_gpus[0].version}</driver_version>",
        f"\t<cuda_version>{cuda_version(branch)}</cuda_version>",
        f"\t<attached_gpus>{len(all_gpus)}</attached_gpus>",
    ]
    for gpu in shown:
        lines.append(f'\t<gpu id="{gpu.bus_id}">')
        for node in gpu_document(gpu):
            _print(node, 2, lines)
        lines += ["\t</gpu>", ""]
    return "\n".join([*lines, "</nvidia_smi_log>", ""])


def _print(node: Node, depth: int, lines: list[str]) -> None:
    name, body = node
    tabs = "\t" * depth
    if name == "mig_devices" or (name == "retired_pagelist" and body == ""):
        # These two hold a line of text of their own where others hold elements.
        lines += [f"{tabs}<{name}>", *([f"{tabs}\t{body}"] if body else []), f"{tabs}</{name}>"]
    elif isinstance(body, str):
        lines.append(f"{tabs}<{name}>{body}</{name}>")
    else:
        lines.append(f"{tabs}<{name}>")
        for child in body:
            _print(child, depth + 1, lines)
        lines.append(f"{tabs}</{name}>")
