"""Bindings as files on the host: a map for launchers, and the numbers of threads for containers and units."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ..facts import cpu_list
from ..facts.known import Unknown
from .bindings import bindings
from .wanted import File, Why

if TYPE_CHECKING:
    from ..facts import Facts
    from ..profile.model import Profile
    from .bindings import Binding

VARIABLE = "nccl_bindings"
MAP = "/etc/gpu-provision/bindings.json"
THREADS = "/etc/gpu-provision/threads.env"
SCHEMA = "gpu-provision/bindings/1"
# OpenMP's own name, and those of the libraries that do not follow it everywhere.
_LIBRARIES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
_SOURCE = "https://www.openmp.org/spec-html/5.0/openmpse50.html"


def document(binding: Binding) -> dict[str, Any]:
    """One GPU's place as JSON has it."""
    return {
        "gpu": binding.gpu,
        "index": binding.index,
        "cpus": cpu_list.show(binding.cpus),
        "numa_nodes": list(binding.nodes),
        "nics": list(binding.nics),
        "threads": binding.threads,
        "shared": binding.shared,
        "numactl": numactl(binding),
    }


def numactl(binding: Binding) -> str:
    """The command prefix that keeps a process on the GPU's cores and memory."""
    nodes = f" --membind={cpu_list.show(binding.nodes)}" if binding.nodes else ""
    return f"numactl --physcpubind={cpu_list.show(binding.cpus)}{nodes}"


def made(facts: Facts) -> tuple[Binding, ...] | Unknown:
    """The bindings of this host; unknown where its table of links cannot be read."""
    found = bindings(facts.topology, facts.cpu)
    return Unknown("the table of links has no GPU") if found == () else found


def files(facts: Facts, profile: Profile) -> tuple[tuple[File, ...], tuple[Why, ...]]:
    """Both files, or their going where nobody asks for them.

    What cannot be told is left as it is: a host whose driver does not answer yet has its files later.
    """
    if not profile[VARIABLE]:
        there = tuple(File(path, None) for path in (MAP, THREADS) if isinstance(facts.file(path), str))
        return there, ()
    found = made(facts)
    if isinstance(found, Unknown):
        return (), (Why(MAP, f"left as it is: {found.reason}"),)
    fewest = min(b.threads for b in found)
    head = "# Written by gpu-provision (role nccl): physical cores for a process of one GPU.\n"
    threads = head + "".join(f"{name}={fewest}\n" for name in _LIBRARIES)
    table = json.dumps({"schema": SCHEMA, "bindings": [document(b) for b in found]}, indent=2) + "\n"
    says = f"{fewest}: the cores near a GPU, shared out among the GPUs there, hardware threads not counted"
    return (File(MAP, table), File(THREADS, threads)), (Why("OMP_NUM_THREADS", says, _SOURCE),)
