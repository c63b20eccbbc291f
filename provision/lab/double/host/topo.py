"""`nvidia-smi topo -m` and `nvidia-smi nvlink -s`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .nvml import INVALID, Refusal
from .world import relation

if TYPE_CHECKING:
    from .gpu import Gpu

LEGEND = """
Legend:

  X    = Self
  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes (e.g., QPI/UPI)
  NODE = Connection traversing PCIe as well as the interconnect between PCIe Host Bridges within a NUMA node
  PHB  = Connection traversing PCIe as well as a PCIe Host Bridge (typically the CPU)
  PXB  = Connection traversing multiple PCIe bridges (without traversing the PCIe Host Bridge)
  PIX  = Connection traversing at most a single PCIe bridge
  NV#  = Connection traversing a bonded set of # NVLinks
"""


def matrix(gpus: list[Gpu]) -> str:
    """The matrix with real tabs. NICs are NIC0.. with a legend of their own from branch 525 on, their device
    names before; `GPU NUMA ID` is there from 535 on, and two tabs before it, as read in public captures.
    """
    branch, nics = gpus[0].branch, gpus[0].world.machine["nics"]
    names = [f"NIC{index}" if branch >= 525 else nic["name"] for index, nic in enumerate(nics)]
    columns = [
        "",
        *(f"GPU{gpu.minor}" for gpu in gpus),
        *names,
        "CPU Affinity",
        *(["NUMA Affinity"] if branch >= 450 else []),
    ]
    lines = ["\t".join([*columns, *(["GPU NUMA ID"] if branch >= 535 else [])])]
    for gpu in gpus:
        cells = [" X " if other is gpu else gpu.joined(other) for other in gpus]
        cells += [relation(gpu.gpu["slot"], nic["slot"]) for nic in nics]
        tail = [
            gpu.gpu["cpus"],
            *([str(gpu.gpu["numa"])] if branch >= 450 else []),
            *(["", "N/A"] if branch >= 535 else []),
        ]
        lines.append("\t".join([f"GPU{gpu.minor}", *cells, *tail]))
    for name, nic in zip(names, nics, strict=True):
        cells = [relation(nic["slot"], gpu.gpu["slot"]) for gpu in gpus]
        cells += [" X " if other is nic else relation(nic["slot"], other["slot"]) for other in nics]
        lines.append("\t".join([name, *cells, *([""] * 4 if branch >= 535 else [])]))
    text = "\n".join(lines) + "\n" + LEGEND
    if nics and branch >= 525:
        text += "\nNIC Legend:\n\n" + "".join(
            f"  NIC{index}: {nic['name']}\n" for index, nic in enumerate(nics)
        )
    return text + "\n"


def topo(gpus: list[Gpu], args: list[str]) -> str:
    if args and args[0] in ("-m", "--matrix"):
        return matrix(gpus)
    raise Refusal(_unknown(args), INVALID)


def nvlink(gpus: list[Gpu], args: list[str]) -> str:
    """Status and speed of every link that is wired."""
    if not args or args[0] not in ("-s", "--status"):
        raise Refusal(_unknown(args), INVALID)
    shown = [gpu for gpu in gpus if "nvlink" in gpu.card]
    if "-i" in args and args.index("-i") + 1 < len(args):
        shown = [
            gpu
            for gpu in shown
            if args[args.index("-i") + 1] in (str(gpu.minor), gpu.gpu["uuid"], gpu.bus_id)
        ]
    text = ""
    for gpu in shown:
        text += f"GPU {gpu.minor}: {gpu.product} (UUID: {gpu.gpu['uuid']})\n"
        link: dict[str, Any] = gpu.card["nvlink"]
        row = gpu.links()
        # Behind switches every link is up and serves all peers; without them each peer has links of its own.
        up = max(row, default=0) if max(row, default=0) == link["links"] else sum(row)
        if gpu.fault("nvlink-down") or up == 0:
            text += "NVML: Unable to retrieve NVLink information as all links are inActive\n"
            continue
        text += "".join(
            f"\t Link {number}: {link['speed']:g} GB/s\n"
            if number < up
            else f"\t Link {number}: <inactive>\n"
            for number in range(link["links"])
        )
    return text


def _unknown(args: list[str]) -> str:
    return (
        f'Option "{args[0]}" is not recognized.\n'
        if args
        else "Invalid input arguments. Please run 'nvidia-smi -h' for help.\n"
    )
