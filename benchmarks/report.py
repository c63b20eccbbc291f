"""The page that a benchmark writes: what was reached, on which machine, by which commit."""

from __future__ import annotations

import os
import platform
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

_HEAD = """\
# How quick it is

Written by `python benchmarks/{by}`; what it measures stands in its first lines.
Numbers are medians of rounds that went through all commands in turn; of starts the shortest counts. Ratios
carry over to other machines; seconds do not, least of all where lab hosts share the processors of the machine
that asks, and a load far above the number of cores stretches ours, which computes, more than `ssh host true`.

"""


@dataclass(frozen=True)
class Goal:
    """One measure beside its goal, which it may not pass (or has to reach, with `at_least`)."""

    what: str
    reached: float
    goal: float
    beside: str
    at_least: bool = False

    @property
    def met(self) -> bool:
        return self.reached >= self.goal if self.at_least else self.reached <= self.goal


def page(goals: Sequence[Goal], day: datetime, by: str = "audit.py --write docs/speed.md") -> str:
    """The whole page; `by` is the command that writes it."""
    rows = [
        f"| {g.what} | {_number(g.reached)} | at {'least' if g.at_least else 'most'} {g.goal:g} | "
        f"{'met' if g.met else '**missed**'} | {g.beside} |"
        for g in goals
    ]
    table = ["| measure | reached | goal | | seen |", "| --- | --- | --- | --- | --- |", *rows]
    return (
        _HEAD.format(by=by)
        + f"{day:%Y-%m-%d}, commit {_commit()}, {_machine()}.\n\n"
        + "\n".join(table)
        + "\n"
    )


def _number(value: float) -> str:
    return f"{value:.0f}" if value >= 10 else f"{value:.2f}"


def _commit() -> str:
    argv = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty"]
    return subprocess.run(argv, capture_output=True, text=True).stdout.strip() or "unknown"


def _machine() -> str:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"{os.cpu_count()} cores of {platform.machine()}, {memory:.0f} GiB of memory, Python "
        f"{platform.python_version()}; load {os.getloadavg()[0]:.1f} at the end"
    )
