"""Control of the files that tell launchers where a GPU's process belongs."""

from __future__ import annotations

from ..facts.known import Absent, Unknown
from ..planners import bindings_files
from .model import Judged, Severity, Verdict, control, failed, not_ours, passed, skipped, unknown


@control(
    "nccl.bindings",
    "Launchers find which cores, memory and NICs are near each GPU, and how many threads fit",
    severity=Severity.LOW,
    role="nccl",
    needs=("gpu.answers",),
)
def bindings(host: Judged) -> Verdict:
    if not host.profile[bindings_files.VARIABLE]:
        there = [
            p for p in (bindings_files.MAP, bindings_files.THREADS) if isinstance(host.facts.file(p), str)
        ]
        if there:
            return failed("no file, as the profile asks for none", f"{', '.join(there)} still there")
        return skipped("the profile asks for none")
    made = bindings_files.made(host.facts)
    if isinstance(made, Unknown):
        # Once the driver answers, the role can write them; a table that cannot be read no role mends.
        silent = isinstance(host.facts.smi, Unknown)
        return unknown(made) if silent else not_ours(unknown(made))
    files, _ = bindings_files.files(host.facts, host.profile)
    told = []
    for file in files:
        now = host.facts.file(file.path)
        if isinstance(now, Unknown):
            return unknown(now)
        if now != file.text:
            told.append(f"{file.path} is {'not there' if isinstance(now, Absent) else 'not as this host is'}")
    expected = f"{bindings_files.MAP} and {bindings_files.THREADS}"
    if told:
        return failed(expected, "; ".join(told))
    return passed(f"{len(made)} GPUs, {min(b.threads for b in made)} threads each", expected=expected)
