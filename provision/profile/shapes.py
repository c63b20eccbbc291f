"""Shapes that argument specs cannot say: a variable that is either a word or a mapping, a version, a name.

Each function returns what is wrong with a value, or None.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from datetime import date
from typing import Any

from .administrators import wrong as administrators
from .mounts import erase as data_disks_erase
from .mounts import mounts as data_disks_mounts
from .repositories import public_key, repository


def clocks(value: Any) -> str | None:
    """`none`, `max`, `base`, or {graphics: MHZ, memory: MHZ}, MHz being whole and positive."""
    if isinstance(value, str) and value in ("none", "max", "base"):
        return None
    if isinstance(value, Mapping):
        extra = sorted(set(value) - {"graphics", "memory"})
        if extra or not value:
            return (
                f"has {', '.join(map(str, extra)) or 'no clock'}; it may hold `graphics` and `memory`, in MHz"
            )
        wrong = [k for k, v in value.items() if not isinstance(v, int) or isinstance(v, bool) or v <= 0]
        return f"{wrong[0]} must be a whole number of MHz" if wrong else None
    return "must be none, max, base, or a mapping with graphics and memory in MHz"


def compute_mode(value: Any) -> str | None:
    """One of nvidia-smi's modes, or nothing at all, which a list of choices would not allow."""
    modes = ("default", "exclusive_process", "prohibited")
    return None if value is None or value in modes else f"{value!r} is none of {', '.join(modes)}"


def version(parts: str) -> Callable[[Any], str | None]:
    """A dotted version given as text; a YAML number would have lost digits (13.10 reads as 13.1)."""

    def check(value: Any) -> str | None:
        if value in (None, ""):
            return None
        if isinstance(value, float):
            return f"write it as text in quotes: YAML reads {value} as a number and drops its zeros"
        return None if re.fullmatch(parts, str(value)) else f"{value!r} is no version of the form {parts!r}"

    return check


def nccl_variables(value: Any) -> str | None:
    """A mapping of NCCL_* names to scalars."""
    if not isinstance(value, Mapping):
        return "must be a mapping of NCCL_* to value"
    for name, setting in value.items():
        if not str(name).startswith("NCCL_"):
            return f"{name} is no NCCL variable: their names begin with NCCL_"
        if isinstance(setting, Mapping | list):
            return f"{name} must be a single value"
    return None


def nccl_debug(value: Any) -> str | None:
    """{level, until, subsystems, file}: what NCCL tells of itself, with the last day of it."""
    if value is None:
        return None
    parts = {"level", "until", "subsystems", "file"}
    if not isinstance(value, Mapping) or not {"level", "until"} <= set(value) <= parts:
        return "is {level, until} and may have subsystems and file"
    if str(value["level"]).upper() not in ("VERSION", "WARN", "INFO", "TRACE"):
        return f"{value['level']!r} is no level: VERSION, WARN, INFO or TRACE"
    try:
        date.fromisoformat(str(value["until"]))
    except ValueError:
        return f"{value['until']!r} is no day such as 2026-12-24"
    subsystems, file = value.get("subsystems") or [], value.get("file") or "/"
    if not isinstance(subsystems, list) or not all(re.fullmatch(r"\^?[A-Za-z]+", str(s)) for s in subsystems):
        return "subsystems is a list of names such as INIT and NET"
    if not re.fullmatch(r"/[\w./%-]*", str(file)):
        return f"{file!r} is no absolute path of letters, digits and . _ - %"
    return None


def size(value: Any) -> str | None:
    """A size of memory as docker takes it: 16G, 512m, or bytes."""
    if value in (None, "") or re.fullmatch(r"[1-9]\d*(\.\d+)?\s*[kmgtKMGT]?(i?[bB])?", str(value)):
        return None
    return f"{value!r} is no size such as 16G"


def firewall_allow(value: Any) -> str | None:
    """A list of {port: N or "A-B", proto: tcp|udp, from: [NETWORK|GROUP], why: TEXT}."""
    if not isinstance(value, list):
        return "must be a list"
    for entry in value:
        if not isinstance(entry, Mapping) or "port" not in entry:
            return f"{entry!r} has no port; an entry is {{port, proto, from, why}}"
        if extra := sorted(set(map(str, entry)) - {"port", "proto", "from", "why"}):
            return f"{extra[0]} is no part of an entry: it has port, proto, from and why"
        # A list that came out empty, of a template for instance, must not open the port to the world.
        if "from" in entry and not entry["from"]:
            return f"from of port {entry['port']} names nobody; leave it out where everybody may come"
        if problem := _port(entry["port"]) or sources(entry.get("from", [])):
            return problem
        if entry.get("proto") not in (None, "tcp", "udp"):
            return f"proto is tcp or udp, not {entry['proto']}"
    return None


def _port(value: Any) -> str | None:
    found = None if isinstance(value, bool) else re.fullmatch(r"(\d{1,5})(?:-(\d{1,5}))?", str(value).strip())
    if found is None:
        return f'{value!r} is no port: give a number, or a range as "8000-8010"'
    first, last = int(found[1]), int(found[2] or found[1])
    if not 0 < first <= last < 65536:
        return f"{value!r} is no range of ports: from 1 to 65535, the lower one first"
    return None


def sources(value: Any) -> str | None:
    """A list of networks, addresses and names of groups or hosts."""
    if not isinstance(value, list):
        return "whom to let in is a list of networks and groups"
    for word in value:
        try:
            ipaddress.ip_network(str(word), strict=False)
        except ValueError:
            if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.-]*", str(word)):
                return f"{word!r} is neither a network nor the name of a group"
    return None


def firewall_peers(value: Any) -> str | None:
    """A mapping of GROUP to addresses and networks."""
    if not isinstance(value, Mapping):
        return "must be a mapping of a group to its addresses"
    for group, members in value.items():
        for member in members if isinstance(members, list) else [members]:
            try:
                ipaddress.ip_network(str(member), strict=False)
            except ValueError:
                return f"{member!r} of {group} is no address and no network"
        if not isinstance(members, list):
            return f"{group} must be a list of addresses"
    return None


def firewall_interfaces(value: Any) -> str | None:
    """Names of interfaces; a `*` at the end stands for any rest."""
    if not isinstance(value, list):
        return "must be a list of names"
    wrong = [name for name in value if not re.fullmatch(r"[A-Za-z0-9_.:@-]{1,15}\*?", str(name))]
    return f"{wrong[0]!r} is no name of an interface" if wrong else None


def units(value: Any) -> str | None:
    """Names of systemd's services."""
    if not isinstance(value, list):
        return "must be a list of names"
    wrong = [name for name in value if not re.fullmatch(r"[A-Za-z0-9_.@:\\-]+", str(name))]
    return f"{wrong[0]!r} is no name of a service" if wrong else None


def bytes_or_unlimited(value: Any) -> str | None:
    """A limit of a process."""
    if value in (None, "unlimited") or (
        isinstance(value, int) and not isinstance(value, bool) and value >= 0
    ):
        return None
    return f"{value!r} is neither `unlimited` nor a number of bytes"


def transparent_hugepages(value: Any) -> str | None:
    """One of the kernel's words, or nothing at all, which a list of choices would not allow."""
    words = ("always", "madvise", "never")
    return None if value is None or value in words else f"{value!r} is none of {', '.join(words)}"


def network_buffers(value: Any) -> str | None:
    """`auto`, or the speed that they are for."""
    if value in (None, "auto") or (isinstance(value, int) and not isinstance(value, bool) and value > 0):
        return None
    return f"{value!r} is neither `auto` nor a speed in Gbit/s"


def between(least: int, most: int) -> Callable[[Any], str | None]:
    """A whole number within bounds."""

    def check(value: Any) -> str | None:
        fits = value is None or (
            isinstance(value, int) and not isinstance(value, bool) and least <= value <= most
        )
        return None if fits else f"{value!r} is no number from {least} to {most}"

    return check


SHAPES: dict[str, Callable[[Any], str | None]] = {
    "container_toolkit_default_shm_size": size,
    "container_toolkit_version": version(r"\d+\.\d+(\.\d+)?"),
    "gpu_settings_clocks": clocks,
    "gpu_settings_compute_mode": compute_mode,
    "nvidia_driver_version": version(r"\d+\.\d+(\.\d+)?"),
    "nccl_debug": nccl_debug,
    "nccl_variables": nccl_variables,
    "nvidia_driver_repository": repository,
    "nvidia_driver_repository_key": public_key,
    "ssh_hardening_admins": administrators,
    "data_disks_erase": data_disks_erase,
    "data_disks_mounts": data_disks_mounts,
    "firewall_allow": firewall_allow,
    "firewall_ssh_from": sources,
    "firewall_ssh_unlimited": sources,
    "firewall_cluster_peers": sources,
    "firewall_peers": firewall_peers,
    "firewall_interfaces": firewall_interfaces,
    "firewall_stop": units,
    "profiling_tools_perf_event_paranoid": between(-1, 4),
    "limits_memlock": bytes_or_unlimited,
    "limits_stack": bytes_or_unlimited,
    # Fewer would leave a login nothing to work with.
    "limits_nofile": between(1024, 1 << 30),
    "limits_swappiness": between(0, 200),
    "limits_dirty_ratio": between(1, 100),
    "limits_dirty_background_ratio": between(0, 99),
    "limits_hugepages": between(0, 1 << 30),
    "limits_transparent_hugepages": transparent_hugepages,
    "limits_network_buffers": network_buffers,
    "limits_cpu_idle_latency": between(0, 1_000_000),
}
