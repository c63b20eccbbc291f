"""Which GPUs a lab host shows, as said on the command line."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ...errors import Usage
from .models import find, platforms

DEFAULT_GPUS = "A100-SXM4-80GB:2"
"""What a lab host shows when nothing is said."""


@dataclass(frozen=True)
class GpuSpec:
    """Product names in the order of the machine's slots, and the words they were asked for with."""

    models: tuple[str, ...]
    text: str

    def __str__(self) -> str:
        return self.text


def parse_gpus(text: str) -> GpuSpec:
    """`MODEL[:COUNT][,MODEL[:COUNT]]...` -> GpuSpec. Empty text or `none` is a host without GPUs.

    Raises Usage for a model that is not known, a count that is no number from 1, and more cards than the
    machine has slots.
    """
    if text.strip().lower() in ("", "none"):
        return GpuSpec((), "none")
    names: list[str] = []
    for part in text.split(","):
        name, _, count = (
            part.strip().rpartition(":") if re.search(r":[^:]*$", part.strip()) else (part.strip(), "", "1")
        )
        if not re.fullmatch(r"[1-9][0-9]?", count):
            raise Usage(
                f"GPUs {part.strip()!r}: the count must be a number from 1",
                do="write MODEL:COUNT, such as T4:2",
            )
        names += [find(name)["name"]] * int(count)
    slots = len(platforms()[find(names[0])["platform"]]["gpus"])
    if len(names) > slots:
        raise Usage(f"{len(names)} GPUs asked for; a machine for {names[0]} has {slots} slots")
    return GpuSpec(tuple(names), text.strip())
