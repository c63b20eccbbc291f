"""Control of the hardware: whether the host has what jobs of its preset expect (data/presets.yml)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..facts.known import Unknown
from .model import Judged, Severity, Verdict, control, passed, skipped, unknown, warned
from .reading import shared_kernel, table
from .topology import board_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Told = str | Unknown | None
"""What is missing, in words; None where nothing is."""


@control(
    "host.hardware",
    "The host has the hardware that jobs of its preset expect",
    severity=Severity.LOW,
    needs=("gpu.answers",),
)
def hardware(host: Judged) -> Verdict:
    row = table("presets")["presets"].get(host.profile.name)
    if row is None:
        return skipped(f"profile {host.profile.name} is no preset, and says nothing of hardware")
    if (why := shared_kernel(host)) is not None:
        return why
    told = list(_told(host, row))
    short = [text for text in told if isinstance(text, str)]
    unclear = [fact for fact in told if isinstance(fact, Unknown)]
    expected = f"what {host.profile.name} expects (docs/presets.md)"
    if short:
        return warned(
            expected,
            "; ".join(short),
            advice="The settings are right all the same; jobs of this kind will be slower, or will not fit.",
            evidence=tuple(f"not known: {fact.reason}" for fact in unclear),
        )
    return unknown(unclear[0], expected=expected) if unclear else passed(expected)


def _told(host: Judged, row: dict[str, Any]) -> Iterator[Told]:
    for name, check in _CHECKS.items():
        if name in row:
            yield check(host, row[name])


def _gpus(host: Judged, least: int) -> Told:
    smi = host.facts.smi
    if isinstance(smi, Unknown):
        return smi
    return f"{len(smi.gpus)} of {least} GPUs" if len(smi.gpus) < least else None


def _gpu_memory(host: Judged, least: int) -> Told:
    sizes = _sizes(host)
    if isinstance(sizes, Unknown):
        return sizes
    small = min(sizes)
    return f"a GPU with {small / 1024:.0f} GiB, not {least / 1024:.0f}" if small < least else None


def _memory(host: Judged, ratio: float) -> Told:
    sizes, memory = _sizes(host), host.facts.memory
    if isinstance(sizes, Unknown):
        return sizes
    if isinstance(memory, Unknown):
        return memory
    # The kernel keeps some of what is fitted, and MemTotal is without it.
    has, wants = memory["MemTotal"] / 1024**2, ratio * sum(sizes) / 1024
    return f"{has:.0f} GiB of memory, not {wants:.0f}" if has < 0.9 * wants else None


def _sizes(host: Judged) -> list[int] | Unknown:
    """MiB of each card."""
    smi = host.facts.smi
    if isinstance(smi, Unknown):
        return smi
    sizes = []
    for gpu in smi.gpus:
        if isinstance(gpu.memory_mib, Unknown):
            return gpu.memory_mib
        sizes.append(gpu.memory_mib)
    return sizes or Unknown("nvidia-smi lists no GPU")


def _nvme(host: Judged, least: int) -> Told:
    disks = host.facts.disks
    if isinstance(disks, Unknown):
        return disks
    found = [disk for disk in disks if disk.transport == "nvme" or disk.name.startswith("nvme")]
    return f"{len(found)} of {least} NVMe disks" if len(found) < least else None


def _network(host: Judged, least: int) -> Told:
    interfaces, ports = host.facts.interfaces, host.facts.rdma
    if isinstance(interfaces, Unknown):
        return interfaces
    speeds = [i.speed_mbit / 1000 for i in interfaces if i.up and i.speed_mbit and i.speed_mbit > 0]
    if not isinstance(ports, Unknown):
        speeds += [p.rate_gbit for p in ports if p.active and p.rate_gbit and not p.switch_management]
    if not speeds:
        return Unknown("no interface tells its speed")
    return f"a network of {max(speeds):g} Gbit/s, not {least}" if max(speeds) < least else None


def _rdma(host: Judged, wanted: bool) -> Told:
    ports = host.facts.rdma
    if isinstance(ports, Unknown):
        return ports
    there = any(port.active and not port.switch_management for port in ports)
    return "no active RDMA port" if wanted and not there else None


def _switched(host: Judged, wanted: bool) -> Told:
    if isinstance(host.facts.smi, Unknown):
        return host.facts.smi
    board = board_of(host)
    joined = board is not None and board["kind"] == "switched"
    return "no board whose GPUs are joined by NVSwitches" if wanted and not joined else None


_CHECKS: dict[str, Callable[[Judged, Any], Told]] = {
    "gpus": _gpus,
    "gpu_memory_mib": _gpu_memory,
    "memory_ratio": _memory,
    "nvme": _nvme,
    "network_gbit": _network,
    "rdma": _rdma,
    "switched": _switched,
}
