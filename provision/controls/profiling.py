"""Controls of the tools to look for slowness with, as far as the profile names them."""

from __future__ import annotations

import re

from ..facts.known import Absent, Unknown
from ..facts.versions import upstream
from ..planners import profiling_counters as counters
from ..planners import profiling_tools as planner
from .model import Disrupts, Judged, Severity, Verdict, control, failed, passed, skipped, unknown, warned
from .reading import shared_kernel

ROLE = "profiling_tools"


def _asked(host: Judged) -> tuple[str, ...]:
    return tuple(host.profile[planner.VARIABLE] or ())


@control(
    "profiling.tools", "The tools that the profile names are installed", severity=Severity.LOW, role=ROLE
)
def tools(host: Judged) -> Verdict:
    asked = _asked(host)
    if not asked:
        return skipped("the profile names none")
    for fact in (host.facts.packages, host.facts.os):
        if isinstance(fact, Unknown):
            return unknown(fact)
    part = planner.wanted(host.facts, host.profile, host.stack)
    if part.refused:
        return failed(", ".join(asked), part.refused)
    if part.packages:
        return failed(", ".join(asked), f"{', '.join(part.packages)} not installed")
    there = {name: planner.installed(host.facts, name) for name in asked}
    left_out = tuple(why.says for why in part.why if "is left out" in why.says)
    return passed(", ".join(p for p in there.values() if p), expected=", ".join(asked), evidence=left_out)


@control("profiling.perf", "perf is of the running kernel's series", severity=Severity.LOW)
def perf(host: Judged) -> Verdict:
    if "perf" not in _asked(host):
        return skipped("the profile does not name perf")
    if (why := shared_kernel(host)) is not None:
        return why
    packages, kernel = host.facts.packages, host.facts.running_kernel
    for fact in (packages, kernel, host.facts.os):
        if isinstance(fact, Unknown):
            return unknown(fact)
    assert not isinstance(packages, Unknown)
    assert isinstance(kernel, str)
    name = planner.installed(host.facts, "perf")
    if name is None:
        return unknown("perf is not installed")
    package = packages.get(name)
    assert package is not None
    series = re.match(r"\d+\.\d+", kernel)
    if series is None:
        return unknown(f"the running kernel has no series: {kernel}")
    version = upstream(package.version)
    if kernel in name or re.match(rf"{re.escape(series[0])}(\.|-|$)", version):
        return passed(f"{name} {version} on {kernel}")
    return warned(
        f"perf of {series[0]}",
        f"{name} {version} on {kernel}",
        advice="Another series lacks events of this one: take perf from where the kernel is from.",
    )


@control(
    "profiling.collecting",
    "sysstat keeps what the host did, where the profile names it",
    severity=Severity.LOW,
    role=ROLE,
    needs=("profiling.tools",),
)
def collecting(host: Judged) -> Verdict:
    if "sysstat" not in _asked(host):
        return skipped("the profile does not name sysstat")
    units = host.facts.units
    if isinstance(units, Unknown):
        return unknown(units)
    known = {} if isinstance(units, Absent) else units
    off = [
        name
        for name in planner.COLLECTING
        if name not in known or not known[name].runs or not known[name].starts_at_boot
    ]
    if off:
        return failed(
            "sysstat's timers, at once and at each boot", f"{', '.join(off)} not running or not enabled"
        )
    return passed(f"{planner.COLLECTING[1]} every ten minutes")


@control(
    "profiling.gpu-counters",
    "GPU counters are open to all users where the profile asks, and only then by us",
    severity=Severity.LOW,
    role=ROLE,
    disrupts=Disrupts.REBOOT,
)
def gpu_counters(host: Judged) -> Verdict:
    asked, now = bool(host.profile[counters.GPU]), host.facts.file(counters.MODPROBE)
    if not asked:
        if isinstance(now, str):
            return failed("no file of ours", f"{counters.MODPROBE} is still there")
        return skipped("the profile does not ask for it")
    if (why := shared_kernel(host)) is not None:
        return why
    part = counters.wanted(host.facts, host.profile)
    if part.refused:
        return failed("open counters", part.refused)
    if isinstance(now, Unknown):
        return unknown(now)
    if now != next(file.text for file in part.files if file.path == counters.MODPROBE):
        return failed(
            counters.MODPROBE, "it is not there" if isinstance(now, Absent) else "it says something else"
        )
    closed = counters.restricted(host.facts)
    if closed is True:
        return failed("open counters", "the loaded module still keeps them for root, until a reboot")
    said = "from the module's next loading on" if isinstance(closed, Unknown) else "open"
    return passed(said, evidence=(f"price: {counters.GPU_PRICE}",))


@control(
    "profiling.cpu-counters",
    "Processor counters are as open as the profile asks",
    severity=Severity.LOW,
    role=ROLE,
)
def cpu_counters(host: Judged) -> Verdict:
    asked, now = host.profile[counters.CPU], host.facts.file(counters.SYSCTL)
    if asked is None:
        if isinstance(now, str):
            return failed("no file of ours", f"{counters.SYSCTL} is still there")
        return skipped("the profile does not ask for it")
    if (why := shared_kernel(host)) is not None:
        return why
    if isinstance(now, Unknown):
        return unknown(now)
    expected = f"{counters.NAME} = {asked}"
    part = counters.wanted(host.facts, host.profile)
    if now != next((file.text for file in part.files if file.path == counters.SYSCTL), None):
        return failed(
            expected, "no file says so" if isinstance(now, Absent) else f"{counters.SYSCTL} says otherwise"
        )
    value = counters.paranoid(host.facts)
    if value is None:
        return unknown(f"the kernel tells no {counters.NAME}")
    if value != str(asked):
        return failed(expected, value)
    return passed(value, expected=expected, evidence=(f"price: {counters.CPU_PRICE}",))
