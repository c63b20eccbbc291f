"""Processors, memory, limits, kernel settings, clock, the make of the machine, and who read it all."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from . import cpu_list
from .answers import document, flag_of, int_of, key_values, output, quote, text_of
from .known import Maybe, Unknown
from .record import record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..recording.model import Answer


@record
class NumaNode:
    """One NUMA node; `cpus` is the kernel's list (`0-31,64-95`), empty for a node of memory only."""

    node: int
    cpus: str
    memory_kb: int | None
    distances: tuple[int, ...]


@record
class Cpu:
    """`governors` counts processors by cpufreq governor; empty where none is scaled (most guests).

    `cores` has the CPUs of each physical core (two with SMT) that are on; empty where the kernel tells none.
    `idle_latency` is the longest wake-up that the first processor may take, in microseconds; 0 is no bound,
    None where the kernel knows no idle states.
    """

    model: str | None
    count: int | None
    sockets: int | None
    governors: Mapping[str, int]
    available_governors: tuple[str, ...]
    scaling_driver: str | None
    nodes: tuple[NumaNode, ...]
    cores: tuple[tuple[int, ...], ...] = ()
    idle_latency: int | None = None


@record
class Limits:
    """(soft, hard) of each limit, None for unlimited: of the recorder's login, and of services by name.

    `systemd` has the manager's defaults as it prints them.
    """

    session: Mapping[str, tuple[int | None, int | None]]
    services: Mapping[str, Mapping[str, tuple[int | None, int | None]]]
    systemd: Mapping[str, str]


@record
class Clock:
    """`timedatectl show`. `unit` is the service that keeps the time, None where none was seen."""

    timezone: str
    ntp: Maybe[bool]
    synchronized: Maybe[bool]
    unit: str | None


@record
class Rights:
    """Who asked, and as whom. `says` are sudo's own words where it gave no rights."""

    user: str
    root: bool
    peer: str | None
    says: str | None = None
    capabilities: int | None = None


def cpu(answer: Answer) -> Cpu | Unknown:
    value = _object(answer)
    if isinstance(value, Unknown):
        return value
    governors, nodes = value.get("governors"), value.get("nodes")
    if not isinstance(governors, dict) or not isinstance(nodes, list):
        return Unknown("cpu: governors or nodes are missing", answer.item)
    read = []
    for row in nodes:
        number = int_of(row, "node") if isinstance(row, dict) else None
        if number is None:
            return Unknown(f"cpu: a NUMA node without a number: {quote(str(row))}", answer.item)
        distances = (text_of(row, "distance") or "").split()
        numbers = tuple(int(d) for d in distances if re.fullmatch(r"\d{1,6}", d))
        read.append(NumaNode(number, text_of(row, "cpus") or "", int_of(row, "memory_kb"), numbers))
    available, cores = value.get("available_governors"), value.get("cores")
    return Cpu(
        text_of(value, "model"),
        int_of(value, "count"),
        int_of(value, "sockets"),
        {str(name): count for name, count in governors.items() if isinstance(count, int)},
        tuple(str(name) for name in available) if isinstance(available, list) else (),
        text_of(value, "scaling_driver"),
        tuple(read),
        tuple(sorted(core for text in cores if (core := cpu_list.parse(str(text)))))
        if isinstance(cores, list)
        else (),
        int_of(value, "idle_latency"),
    )


def memory(answer: Answer) -> Mapping[str, int] | Unknown:
    """/proc/meminfo in KiB (the counts of huge pages as they are)."""
    text = output(answer)
    if isinstance(text, Unknown):
        return text
    found: dict[str, int] = {}
    for line in text.splitlines():
        if match := re.fullmatch(r"([A-Za-z0-9_()]+):\s+(\d{1,18})(?: kB)?\s*", line):
            found[match[1]] = int(match[2])
        elif line.strip():
            return Unknown(f"meminfo: unexpected line: {quote(line)}", answer.item)
    return found if "MemTotal" in found else Unknown("meminfo names no MemTotal", answer.item)


def limits(answer: Answer) -> Limits | Unknown:
    value = _object(answer)
    if isinstance(value, Unknown):
        return value
    session, services, systemd = (value.get(key) for key in ("session", "services", "systemd"))
    own = _pairs(session)
    if own is None or "memlock" not in own:
        return Unknown("limits: those of the session are missing", answer.item)
    of_services = {}
    for name, row in services.items() if isinstance(services, dict) else ():
        pairs = _pairs(row)
        if pairs is None:
            return Unknown(f"limits of {name}: {quote(str(row))}", answer.item)
        of_services[str(name)] = pairs
    manager = systemd if isinstance(systemd, dict) else {}
    return Limits(own, of_services, {str(k): str(v) for k, v in manager.items()})


def _pairs(value: Any) -> dict[str, tuple[int | None, int | None]] | None:
    if not isinstance(value, dict):
        return None
    found: dict[str, tuple[int | None, int | None]] = {}
    for name, pair in value.items():
        if not isinstance(pair, list):
            continue
        if len(pair) != 2:
            return None
        soft, hard = pair
        for side in pair:
            if side != "unlimited" and (isinstance(side, bool) or not isinstance(side, int)):
                return None
        found[str(name)] = (None if soft == "unlimited" else soft, None if hard == "unlimited" else hard)
    return found


def sysctl(answer: Answer) -> Mapping[str, str] | Unknown:
    """`name = value` lines. A name that is not in them is not in the kernel."""
    text = output(answer)
    if isinstance(text, Unknown):
        return text
    found = key_values(text, answer.item)
    if not isinstance(found, Unknown) and not found:
        return Unknown("sysctl: nothing was printed", answer.item)
    return found


def clock(answer: Answer) -> Clock | Unknown:
    text = output(answer)
    if isinstance(text, Unknown):
        return text
    values = key_values(text, answer.item)
    if isinstance(values, Unknown):
        return values

    def yes(key: str) -> Maybe[bool]:
        word = values.get(key, "").lower()
        return word == "yes" if word in {"yes", "no"} else Unknown(f"{key} was not told", answer.item)

    if "Timezone" not in values:
        return Unknown(f"timedatectl: {quote(text) or 'nothing was printed'}", answer.item)
    return Clock(values["Timezone"], yes("NTP"), yes("NTPSynchronized"), values.get("Unit"))


def machine(answer: Answer) -> Mapping[str, str] | Unknown:
    """Vendor and product of the machine, from DMI."""
    value = _object(answer)
    if isinstance(value, Unknown):
        return value
    return {str(key): text for key, text in value.items() if isinstance(text, str) and text}


def rights(answer: Answer) -> Rights | Unknown:
    value = _object(answer)
    if isinstance(value, Unknown):
        return value
    user, root = text_of(value, "user"), flag_of(value, "root")
    if user is None or root is None:
        return Unknown("rights: user or root is missing", answer.item)
    bounding = text_of(value, "capabilities") or ""
    capabilities = int(bounding, 16) if re.fullmatch(r"[0-9a-f]{1,16}", bounding) else None
    return Rights(user, root, text_of(value, "from"), text_of(value, "says"), capabilities)


def _object(answer: Answer) -> dict[str, Any] | Unknown:
    value = document(answer)
    if isinstance(value, (Unknown, dict)):
        return value
    return Unknown(f"{answer.item}: a JSON object was expected", answer.item)
