"""The short lists of nvidia-smi: `-L` (GPUs and their MIG slices) and `nvlink -s` (speed of each link)."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from .answers import output, quote
from .known import Unknown
from .record import record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..recording.model import Answer

_GPU = re.compile(r"GPU (\d{1,3}): (.*?)(?: \(UUID: ([^)]*)\))?")
_MIG = re.compile(r"\s*MIG (\S+)\s+Device\s+(\d+): \(UUID: ([^)]*)\)")
_LINK = re.compile(r"\s*Link (\d{1,2}): (?:([\d.]{1,12}) GB/s|<?inactive>?)", re.IGNORECASE)


@record
class MigSlice:
    """One MIG device: its profile (`1g.10gb`), number and UUID."""

    profile: str
    number: int
    uuid: str


@record
class ListedGpu:
    """One GPU of `nvidia-smi -L`. MIG slices are its own, and are no GPUs."""

    index: int
    name: str
    uuid: str
    slices: tuple[MigSlice, ...]


@record
class GpuLinks:
    """NVLinks of one GPU by number, in GB/s one way; None for a link that is down."""

    index: int
    speeds: Mapping[int, float | None]

    @property
    def up(self) -> int:
        return sum(speed is not None for speed in self.speeds.values())


def gpus(answer: Answer) -> tuple[ListedGpu, ...] | Unknown:
    text = output(answer)
    if isinstance(text, Unknown):
        return text
    found: list[ListedGpu] = []
    for line in text.splitlines():
        if not line.strip():
            continue
        if gpu := _GPU.fullmatch(line.rstrip()):
            found.append(ListedGpu(int(gpu[1]), gpu[2], gpu[3] or "", ()))
        elif (mig := _MIG.fullmatch(line.rstrip())) and found:
            piece = MigSlice(mig[1], int(mig[2]), mig[3])
            found[-1] = replace(found[-1], slices=(*found[-1].slices, piece))
        else:
            return Unknown(f"nvidia-smi -L: {quote(line)}", answer.item)
    return tuple(found) if found else Unknown("nvidia-smi -L printed nothing", answer.item)


def nvlinks(answer: Answer) -> tuple[GpuLinks, ...] | Unknown:
    """A GPU without NVLink is listed with no link. A GPU whose links are all down says so in a sentence."""
    text = output(answer)
    if isinstance(text, Unknown):
        return text
    found: list[tuple[int, dict[int, float | None]]] = []
    for line in text.splitlines():
        if not line.strip() or re.search(r"all links are inactive", line, re.IGNORECASE):
            continue
        if gpu := _GPU.fullmatch(line.rstrip()):
            found.append((int(gpu[1]), {}))
        elif (link := _LINK.fullmatch(line.rstrip())) and found:
            try:
                found[-1][1][int(link[1])] = float(link[2]) if link[2] else None
            except ValueError:
                return Unknown(f"nvidia-smi nvlink -s: {quote(line)}", answer.item)
        else:
            return Unknown(f"nvidia-smi nvlink -s: {quote(line)}", answer.item)
    if not found:
        return Unknown("nvidia-smi nvlink -s printed nothing", answer.item)
    return tuple(GpuLinks(index, speeds) for index, speeds in found)
