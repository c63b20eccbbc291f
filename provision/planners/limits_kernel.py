"""Settings of the running kernel: memory, network buffers, processor clocks and idle states.

A host that shares its machine's kernel is left alone: they are that machine's.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..facts.known import Absent, Unknown
from ..yaml_text import read_yaml
from .wanted import File, Wanted, Why

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..facts import Facts
    from ..profile.model import Profile

SYSCTL = "/etc/sysctl.d/90-gpu-provision.conf"
TMPFILES = "/etc/tmpfiles.d/gpu-provision-limits.conf"
HUGE = "/sys/kernel/mm/transparent_hugepage/enabled"
GOVERNORS = "/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"
LATENCIES = "/sys/devices/system/cpu/cpu*/power/pm_qos_resume_latency_us"
HEAD = "# Written by gpu-provision (role limits); change it through the role's variables.\n"
BUFFERS = "limits_network_buffers"
PLAIN = {
    "limits_swappiness": "vm.swappiness",
    "limits_dirty_ratio": "vm.dirty_ratio",
    "limits_dirty_background_ratio": "vm.dirty_background_ratio",
    "limits_hugepages": "vm.nr_hugepages",
    "limits_numa_balancing": "kernel.numa_balancing",
}
FILES = ("limits_transparent_hugepages", "limits_cpu_governor", "limits_cpu_idle_latency")
VARIABLES = (*PLAIN, BUFFERS, *FILES)
# Both work whether our files are there or not, so a change that is put back applies what is left.
APPLY = ("systemctl restart systemd-sysctl.service", "systemd-tmpfiles --create --boot --prefix=/sys")
# Services that set clocks themselves would undo ours at their next turn.
_TUNERS = ("tuned.service", "power-profiles-daemon.service", "auto-cpufreq.service")
_DATA = Path(__file__).parent.parent / "catalog" / "data" / "kernel_settings.yml"


@cache
def _data() -> Mapping[str, Any]:
    return dict(read_yaml(_DATA.read_text(encoding="utf-8")))


def named(profile: Profile) -> tuple[str, ...]:
    """Variables of this part that the profile sets to something."""
    return tuple(name for name in VARIABLES if profile[name] is not None)


def wanted(facts: Facts, profile: Profile) -> Wanted:
    """A file for sysctl and one for tmpfiles, whose lines are applied at once as well as at each boot."""
    asked = named(profile)
    virtualization = facts.virtualization
    if asked and not isinstance(virtualization, Unknown) and virtualization.shares_kernel:
        says = f"left alone: the kernel is another machine's ({virtualization.kind})"
        return Wanted(
            files=(File(SYSCTL, None), File(TMPFILES, None)), why=tuple(Why(n, says) for n in asked)
        )
    found, lines = settings(facts, profile), written(facts, profile)
    for problem in (found, lines):
        if isinstance(problem, str):
            return Wanted(refused=problem)
    assert not isinstance(found, str)
    assert not isinstance(lines, str)
    values, why = found
    sysctl = HEAD + "".join(f"{name} = {value}\n" for name, value in values.items()) if values else None
    files = HEAD + "".join(f"w! {path} - - - - {value}\n" for path, value in lines.items()) if lines else None
    return Wanted(
        files=(File(SYSCTL, sysctl), File(TMPFILES, files)),
        reload=APPLY,
        steps=tuple(f"set {name} to {to} (now {now})" for name, now, to in unlike(facts, profile)),
        why=tuple(why),
    )


def settings(facts: Facts, profile: Profile) -> tuple[dict[str, str], list[Why]] | str:
    """sysctl's names with their values, and why; or why they cannot be told."""
    values: dict[str, str] = {}
    why: list[Why] = []
    for variable, name in PLAIN.items():
        if (value := profile[variable]) is not None:
            values[name] = str(int(value))
            row = _data()["settings"][name]
            why.append(Why(name, row["why"], row["source"]))
    kind = profile[BUFFERS]
    if kind is None:
        return values, why
    speed = _speed(facts) if kind == "auto" else int(kind) * 1000
    if isinstance(speed, Unknown):
        # Most virtual interfaces tell none: a preset that asks for `auto` is to serve them, too.
        return values, [
            *why,
            Why(BUFFERS, f"left alone: {speed.reason}; the variable may name it, in Gbit/s"),
        ]
    row = next(row for row in _data()["buffers"]["by_speed"] if speed <= row["up_to_mbit"])
    values |= {str(name): str(value) for name, value in row["set"].items()}
    source = _data()["buffers"]["source"]
    why += [Why(name, f"for {speed / 1000:g} Gbit/s", source) for name in row["set"]]
    return values, why


def _speed(facts: Facts) -> int | Unknown:
    """Mbit/s of the fastest interface with an address."""
    interfaces = facts.interfaces
    if isinstance(interfaces, Unknown):
        return interfaces
    speeds = [i.speed_mbit for i in interfaces if i.up and i.routable and i.speed_mbit and i.speed_mbit > 0]
    return max(speeds) if speeds else Unknown("no interface with an address tells its speed")


def written(facts: Facts, profile: Profile) -> dict[str, str] | str:
    """Files below /sys with what is written into them; or why they cannot be."""
    lines: dict[str, str] = {}
    if (huge := profile["limits_transparent_hugepages"]) is not None:
        lines[HUGE] = huge
    governor, latency = profile["limits_cpu_governor"], profile["limits_cpu_idle_latency"]
    if governor is None and latency is None:
        return lines
    units, cpu = facts.units, facts.cpu
    known = {} if isinstance(units, Unknown | Absent) else units
    owner = next((name for name in _TUNERS if name in known and known[name].runs), None)
    if owner is not None:
        return f"limits_cpu_governor, limits_cpu_idle_latency: {owner} sets them; stop it, or set them there."
    if isinstance(cpu, Unknown):
        return f"the processors are not known: {cpu.reason}"
    if governor is not None and cpu.governors:
        if cpu.available_governors and governor not in cpu.available_governors:
            known_ones = ", ".join(cpu.available_governors)
            return f"limits_cpu_governor: these processors know {known_ones}, not {governor}"
        lines[GOVERNORS] = governor
    if latency is not None and cpu.idle_latency is not None:
        lines[LATENCIES] = str(latency)
    return lines


def unlike(facts: Facts, profile: Profile) -> list[tuple[str, str, str]]:
    """(name, value now, value wanted) of what the running kernel has otherwise; `?` is not told."""
    found = settings(facts, profile)
    lines = written(facts, profile)
    if isinstance(found, str) or isinstance(lines, str):
        return []
    told = []
    now = facts.sysctl
    for name, value in found[0].items():
        current = "?" if isinstance(now, Unknown) else " ".join(now.get(name, "?").split())
        if current != value:
            told.append((name, current, value))
    cpu = facts.cpu
    if HUGE in lines:
        text = facts.file(HUGE)
        current = text.partition("[")[2].partition("]")[0] if isinstance(text, str) else "?"
        if current != lines[HUGE]:
            told.append((HUGE, current or "?", lines[HUGE]))
    if not isinstance(cpu, Unknown):
        if GOVERNORS in lines and set(cpu.governors) != {lines[GOVERNORS]}:
            told.append((GOVERNORS, ", ".join(sorted(cpu.governors)), lines[GOVERNORS]))
        if LATENCIES in lines and str(cpu.idle_latency) != lines[LATENCIES]:
            told.append((LATENCIES, str(cpu.idle_latency), lines[LATENCIES]))
    return told
