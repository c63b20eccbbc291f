"""Measuring commands: wall clock, processor time and memory of each, in rounds through all of them."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

# Bytecode is kept, as for anybody who installed the command.
ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
# The command as its entry point runs it; says at its end what it took itself, without its ssh.
OURS = (
    sys.executable,
    "-c",
    "import atexit, resource, sys; from provision.cli.main import main\n"
    "def told(r=resource):\n"
    "    u = r.getrusage(r.RUSAGE_SELF); print(f'own {u.ru_utime + u.ru_stime:.4f}', file=sys.stderr)\n"
    "atexit.register(told); main()",
)


@dataclass(frozen=True)
class Run:
    """What one run took: `seconds` by the clock, `own` of the processor for OURS, `peak` in MB."""

    seconds: float
    own: float
    peak: float


def run(argv: Sequence[str], environment: Mapping[str, str] | None = None) -> Run:
    """Run a command to its end; what it found does not matter. Exits where it could not work."""
    start = time.perf_counter()
    with subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**ENVIRONMENT, **(environment or {})},
    ) as child:
        assert child.stderr
        said = child.stderr.read()
        _, status, usage = os.wait4(child.pid, 0)
        seconds = time.perf_counter() - start
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode not in (0, 1):
        sys.exit(f"{' '.join(argv)} ended with {child.returncode}: {said}")
    own = [float(line.split()[1]) for line in said.splitlines() if line.startswith("own ")]
    return Run(seconds, own[-1] if own else 0.0, usage.ru_maxrss / 1024)


def rounds(
    commands: Mapping[str, Callable[[], Run]], count: int, *, warm: bool = True
) -> dict[str, list[Run]]:
    """Each command once a round, so that what else the machine does falls on all of them alike."""
    taken: dict[str, list[Run]] = {name: [] for name in commands}
    if warm:
        for command in commands.values():
            command()
    for _ in range(count):
        for name, command in commands.items():
            taken[name].append(command())
    return taken


def median(values: Sequence[float]) -> float:
    return statistics.median(values)
