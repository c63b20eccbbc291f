"""Whether the NCCL that is there reads the settings that it is given, whoever wrote them."""

from __future__ import annotations

from ..facts.known import Absent, Unknown
from ..planners import nccl_file
from ..planners.nccl_names import nearest, unread, variables
from ..planners.nccl_release import nccl_release
from .model import Judged, Severity, Verdict, control, passed, skipped, unknown, warned


@control("nccl.known-names", "NCCL reads every variable that /etc/nccl.conf sets", severity=Severity.LOW)
def known_names(host: Judged) -> Verdict:
    text = host.facts.file(nccl_file.PATH)
    if isinstance(text, Unknown):
        return unknown(text)
    if isinstance(text, Absent):
        return skipped(f"{nccl_file.PATH} is not there")
    names = [name for name in nccl_file.effective(text) if name.startswith("NCCL_")]
    if not names:
        return skipped(f"{nccl_file.PATH} sets no variable of NCCL")
    installed = nccl_release(host.facts)
    told = []
    for name in names:
        if name not in variables():
            near = nearest(name)
            told.append(f"NCCL reads no variable {name}" + (f"; it is near {near}" if near else ""))
        elif installed is not None and (why := unread(name, installed)) is not None:
            told.append(why)
    if told:
        return warned(
            "names that NCCL reads",
            told[0] + (f", and {len(told) - 1} more" if len(told) > 1 else ""),
            advice=f"NCCL ignores them in silence: correct the lines in {nccl_file.PATH} or nccl_variables.",
            evidence=tuple(told),
        )
    by = f"NCCL {installed}" if installed else "some release of NCCL"
    return passed(f"{len(names)} names, all read by {by}")
