"""Lists of CPUs or nodes the way that the kernel writes them: `0-31,64-95` (its cpulist format)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

# More than any kernel's NR_CPUS; a range beyond it is damaged text.
_LARGEST = 65536
_LIST = re.compile(r"\d{1,5}(-\d{1,5})?(,\d{1,5}(-\d{1,5})?)*")


def parse(text: str) -> tuple[int, ...] | None:
    """The numbers of a list in its own order; None where the text is none."""
    if _LIST.fullmatch(text) is None:
        return None
    numbers: list[int] = []
    for part in text.split(","):
        low, _, high = part.partition("-")
        first, last = int(low), int(high or low)
        if not first <= last <= _LARGEST:
            return None
        numbers += range(first, last + 1)
    return tuple(numbers)


def show(numbers: Iterable[int]) -> str:
    """`0,3-9` for 0 3 4 5 6 7 8 9, in ascending order."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1][1:] = [number]
        else:
            runs.append([number])
    return ",".join("-".join(map(str, run)) for run in runs)
