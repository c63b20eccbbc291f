"""The control of the data mounts that the profile names: they are there, now and at the next boot."""

from __future__ import annotations

from ..facts.known import Absent, Unknown
from ..planners import data_disks, data_disks_now
from .model import Judged, Severity, Verdict, control, failed, passed, skipped, unknown

ROLE = "data_disks"


@control(
    "storage.data-disks",
    "Data disks are mounted as the profile names them",
    severity=Severity.HIGH,
    role=ROLE,
)
def wanted(host: Judged) -> Verdict:
    named = host.profile["data_disks_mounts"]
    if not named:
        return skipped("the profile names no data mount")
    unread = (
        host.facts.block_devices,
        host.facts.surfaces,
        host.facts.mounts,
        host.facts.fstab,
        host.facts.packages,
    )
    for fact in unread:
        if isinstance(fact, Unknown):
            return unknown(fact)
    answer = data_disks.wanted(host.facts, host.profile, host.stack)
    expected = ", ".join(str(entry["path"]) for entry in named)
    if answer.refused:
        return failed(expected, answer.refused, advice="Nothing is written as long as that holds.")
    for mount in answer.mounts:
        if (why := data_disks_now.unclear(mount, host.facts)) is not None:
            return unknown(why)
    told = list(answer.steps)
    told += [f"{name} is not installed" for name in answer.packages]
    (file,) = answer.files
    if host.facts.file(file.path) != file.text:
        told.append(f"{file.path} is not as wanted")
    told += _timer(host)
    return failed(expected, "; ".join(told)) if told else passed(expected)


def _timer(host: Judged) -> list[str]:
    """Freed blocks are told to the disks once a week, not at each deletion, which would stall writers."""
    units = host.facts.units
    state = None if isinstance(units, Unknown | Absent) else units.get(data_disks.TRIM)
    runs = state is not None and state.runs and state.starts_at_boot
    return [] if runs else [f"{data_disks.TRIM} is not enabled and running"]
