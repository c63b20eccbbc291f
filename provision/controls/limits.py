"""Controls of limits, kernel settings and the clock, as far as the profile names them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..facts.known import Absent, Unknown
from ..planners import limits_kernel, limits_processes, limits_time
from .model import Disrupts, Judged, Severity, Verdict, control, failed, passed, skipped, unknown

if TYPE_CHECKING:
    from ..planners.wanted import File, Wanted

ROLE = "limits"


def _files(host: Judged, files: tuple[File, ...]) -> list[str] | Unknown:
    """Which files are not as wanted; unknown where one that has to be there cannot be read."""
    told = []
    for file in files:
        now = host.facts.file(file.path)
        if isinstance(now, Unknown):
            if file.text is None:
                continue
            return now
        if (None if isinstance(now, Absent) else now) != file.text:
            told.append(f"{file.path} is {'still there' if file.text is None else 'not as wanted'}")
    return told


def _part(host: Judged, part: Wanted) -> Verdict | list[str]:
    if part.refused:
        return failed("settings that this host can have", part.refused)
    told = _files(host, part.files)
    return unknown(told) if isinstance(told, Unknown) else told


@control(
    "host.limits",
    "Processes may lock, open and stack what the profile names",
    severity=Severity.MEDIUM,
    role=ROLE,
    disrupts=Disrupts.NOTHING,
)
def processes(host: Judged) -> Verdict:
    told = _part(host, limits_processes.wanted(host.facts, host.profile))
    if isinstance(told, Verdict):
        return told
    wanted = limits_processes.defaults(host.facts, host.profile)
    if not wanted and not told:
        return skipped("the profile names no limit")
    manager = host.facts.limits
    if wanted and isinstance(manager, Unknown):
        return unknown(manager)
    for name, value in wanted.items():
        assert not isinstance(manager, Unknown)
        now = manager.systemd.get(name)
        if now is None:
            return unknown(f"systemd tells no {name}")
        if now != value:
            told.append(f"{name} is {now}")
    expected = ", ".join(f"{name}={value}" for name, value in wanted.items()) or "no file of ours"
    return failed(expected, "; ".join(told)) if told else passed(expected)


@control(
    "host.kernel-settings",
    "The kernel treats memory, sockets and clocks as the profile names",
    severity=Severity.LOW,
    role=ROLE,
)
def kernel(host: Judged) -> Verdict:
    part = limits_kernel.wanted(host.facts, host.profile)
    told = _part(host, part)
    if isinstance(told, Verdict):
        return told
    named = limits_kernel.named(host.profile)
    if not told and not named:
        return skipped("the profile names no setting of the kernel")
    if not told and all(file.text is None for file in part.files):
        return skipped("; ".join(dict.fromkeys(why.says for why in part.why)) or "nothing of it is here")
    now = limits_kernel.unlike(host.facts, host.profile) if part.reload else []
    told += [f"{name} is {current}, not {to}" for name, current, to in now if current != "?"]
    if now and not told:
        return unknown(f"{', '.join(name for name, _, _ in now)}: no value was told")
    expected = ", ".join(named) or "no file of ours"
    return failed(expected, "; ".join(told)) if told else passed(f"{expected} as named")


@control(
    "host.time-service",
    "A service keeps the time where the profile asks for it",
    severity=Severity.LOW,
    role=ROLE,
)
def time_service(host: Judged) -> Verdict:
    if not host.profile[limits_time.VARIABLE]:
        return skipped("the profile leaves the clock alone")
    part = limits_time.wanted(host.facts, host.profile)
    if part.refused:
        return failed("a time service", part.refused)
    if not part.units:
        return skipped("; ".join(why.says for why in part.why))
    units = host.facts.units
    (unit,) = part.units
    if isinstance(units, Unknown):
        return unknown(units)
    state = None if isinstance(units, Absent) else units.get(unit.name)
    if state is None or not state.runs or not state.starts_at_boot:
        return failed(f"{unit.name} running, and enabled", "it is not" if state else "it is not there")
    return passed(f"{unit.name} runs")
