"""Which cores and memory a process of each GPU belongs to, so that it stays on the GPU's side of the machine.

A GPU's CPUs are those that `nvidia-smi topo -m` names as near it. GPUs that share them share the cores
out evenly, whole cores each: two processes on the two threads of one core slow each other down.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..facts import cpu_list
from ..facts.known import Unknown
from ..facts.record import record

if TYPE_CHECKING:
    from ..facts.system import Cpu
    from ..facts.topology import Topology


@record
class Binding:
    """One GPU's place.

    `cpus` are the CPUs for a process of this GPU alone, ascending; `nodes` the NUMA nodes of its memory,
    empty where the host names none; `nics` the nearest ones by device name; `threads` the number of
    physical cores among `cpus`, and so of OpenMP, MKL or BLAS threads. `shared` is True where the host
    has fewer cores than GPUs, or does not tell which CPUs are one core: `cpus` are then those of all
    GPUs on that side, and `threads` is each one's part of them, at least 1.
    """

    gpu: str
    index: int
    cpus: tuple[int, ...]
    nodes: tuple[int, ...]
    nics: tuple[str, ...]
    threads: int
    shared: bool


def bindings(topology: Topology | Unknown, cpu: Cpu | Unknown) -> tuple[Binding, ...] | Unknown:
    """A binding a GPU, in the order of the table, which is that of nvidia-smi and of PCI addresses."""
    if isinstance(topology, Unknown):
        return topology
    near: dict[str, tuple[int, ...]] = {}
    for gpu in topology.gpus:
        side_of = _near(topology, cpu, gpu)
        if isinstance(side_of, Unknown):
            return side_of
        near[gpu] = side_of
    cores = () if isinstance(cpu, Unknown) else cpu.cores
    made = []
    for gpu in topology.gpus:
        side = [other for other in topology.gpus if near[other] == near[gpu]]
        cpus, threads, shared = _part(near[gpu], cores, side.index(gpu), len(side))
        nodes = topology.numa[gpu]
        made.append(
            Binding(
                gpu,
                int(gpu.removeprefix("GPU")),
                cpus,
                () if isinstance(nodes, Unknown) else _with_cpus(nodes, cpu),
                tuple(
                    nic.label if isinstance(nic.device, Unknown) else nic.device
                    for nic in topology.nearest_nics(gpu)
                ),
                threads,
                shared,
            )
        )
    return tuple(made)


def _near(topology: Topology, cpu: Cpu | Unknown, gpu: str) -> tuple[int, ...] | Unknown:
    """The CPUs near a GPU; where the table names none (most guests have one node), all that the host has."""
    named = topology.cpu_affinity[gpu]
    cpus = None if isinstance(named, Unknown) else cpu_list.parse(named)
    if cpus is not None:
        return cpus
    everything = () if isinstance(cpu, Unknown) else tuple(sorted(n for core in cpu.cores for n in core))
    if not everything:
        reason = named.reason if isinstance(named, Unknown) else f"no CPU list: {named}"
        return Unknown(f"the CPUs near {gpu} are not known: {reason}")
    return everything


def _with_cpus(nodes: tuple[int, ...], cpu: Cpu | Unknown) -> tuple[int, ...]:
    """The nodes that have CPUs: Grace boards list their GPUs' own memory as nodes too."""
    if isinstance(cpu, Unknown):
        return nodes[:1]
    with_cpus = {node.node for node in cpu.nodes if node.cpus}
    return tuple(node for node in nodes if node in with_cpus) or nodes[:1]


def _part(
    cpus: tuple[int, ...], cores: tuple[tuple[int, ...], ...], number: int, of: int
) -> tuple[tuple[int, ...], int, bool]:
    """(CPUs, cores among them, whether they are shared) for one of several GPUs on the same side."""
    allowed = set(cpus)
    here = [core for core in (tuple(n for n in core if n in allowed) for core in cores) if core]
    if sum(map(len, here)) != len(allowed) or len(here) < of:
        return tuple(sorted(allowed)), max(1, (len(here) or len(allowed)) // of), of > 1
    each = len(here) // of
    mine = here[number * each : (number + 1) * each]
    return tuple(sorted(n for core in mine for n in core)), each, False
