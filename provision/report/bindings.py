"""Bindings in the forms of those who start jobs: numactl, torchrun, Slurm."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provision.facts import cpu_list
from provision.planners.bindings_files import numactl

if TYPE_CHECKING:
    from provision.planners.bindings import Binding


def torchrun(bindings: tuple[Binding, ...]) -> str:
    """A program for `torchrun --no-python`: torchrun gives each worker its LOCAL_RANK, and that its GPU."""
    cases = [
        f'{b.index}) export OMP_NUM_THREADS=${{OMP_NUM_THREADS:-{b.threads}}}; exec {numactl(b)} -- "$@" ;;'
        for b in bindings
    ]
    return "\n".join(
        [
            "#!/bin/sh",
            f"# torchrun --nproc-per-node={len(bindings)} --no-python ./bind.sh python train.py",
            "# Each worker has to take the GPU of its LOCAL_RANK, as torchrun's examples do.",
            "export CUDA_DEVICE_ORDER=PCI_BUS_ID",
            'case "$LOCAL_RANK" in',
            *cases,
            '*) echo "bind.sh: LOCAL_RANK is ${LOCAL_RANK:-not set}, and GPUs are 0 to '
            f'{bindings[-1].index}" >&2; exit 2 ;;',
            "esac",
        ]
    )


def slurm(bindings: tuple[Binding, ...]) -> str:
    """The start of an srun for one task a GPU. Masks count where a job has the whole node (man srun)."""
    masks = ",".join(hex(sum(1 << cpu for cpu in b.cpus)) for b in bindings)
    gpus = ",".join(str(b.index) for b in bindings)
    memory = " --mem-bind=local" if any(b.nodes for b in bindings) else ""
    return (
        f"srun --exclusive --ntasks-per-node={len(bindings)} --gpus-per-node={len(bindings)} "
        f"--gpu-bind=map_gpu:{gpus} --cpu-bind=mask_cpu:{masks}{memory}"
    )


def text(bindings: tuple[Binding, ...]) -> str:
    """All forms, a person's table first."""
    lines = []
    for b in bindings:
        nodes = f"NUMA node {cpu_list.show(b.nodes)}" if b.nodes else "NUMA node not known"
        cores = f"{b.threads} threads" + (" (CPUs shared with other GPUs)" if b.shared else "")
        lines.append(
            f"{b.gpu}: CPUs {cpu_list.show(b.cpus)}, {nodes}, {cores}, NICs {', '.join(b.nics) or 'none'}"
        )
    lines += ["", "numactl, before the program of each GPU:"]
    lines += [
        f"  CUDA_VISIBLE_DEVICES={b.index} OMP_NUM_THREADS={b.threads} {numactl(b)} -- …" for b in bindings
    ]
    lines += ["", "torchrun, as bind.sh:"]
    lines += [f"  {line}" for line in torchrun(bindings).splitlines()]
    lines += ["", "Slurm, one task a GPU on a whole node:", f"  {slurm(bindings)}"]
    return "\n".join(lines)
