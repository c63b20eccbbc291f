"""Controls of what lies between GPUs and NICs, against what boards of that model have."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any

from ..facts.known import Unknown
from ..facts.smi_trouble import SmiTrouble
from .gpu import cards
from .gpu_events import has_mig
from .model import Judged, Severity, Status, Verdict, control, failed, passed, skipped, unknown, warned
from .reading import is_vm, table

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..facts.topology import Topology

_SHOWN = 8
_HINT = (
    "Look at the fabric's state, at MIG mode, at Xid 74 in the kernel's log and at `nvidia-smi nvlink -s`; "
    "a GPU that stays out has a failed link on the baseboard."
)


def _table(host: Judged) -> Topology | Verdict:
    """The table of the host's links; nvidia-smi's word is enough where the bus was not recorded."""
    found, ours = host.facts.topology, cards(host)
    if isinstance(ours, Verdict) and ours.status is Status.SKIP:
        return ours
    return unknown(found) if isinstance(found, Unknown) else found


@control(
    "topology.readable",
    "The table of links is whole, and its two halves agree",
    severity=Severity.LOW,
    needs=("gpu.answers",),
)
def readable(host: Judged) -> Verdict:
    found, smi = _table(host), host.facts.smi
    if isinstance(found, Verdict):
        return found
    if found.asymmetric:
        pairs = tuple(f"{a} and {b}" for a, b in found.asymmetric)
        return failed("each pair told alike from both ends", pairs[0], evidence=pairs[:_SHOWN])
    if not isinstance(smi, Unknown) and len(smi.gpus) != len(found.gpus):
        return failed(f"{len(smi.gpus)} GPUs", f"the table has {len(found.gpus)}")
    if not found.complete:
        return unknown("the table is cut: rows of NICs are missing")
    return passed(f"{len(found.gpus)} GPUs, {len(found.nics)} NICs")


@control(
    "topology.nvlink",
    "GPUs reach each other over NVLink as boards of their model do",
    severity=Severity.HIGH,
    needs=("gpu.answers", "topology.readable"),
)
def nvlink(host: Judged) -> Verdict:
    found = _table(host)
    if isinstance(found, Verdict):
        return found
    gpus = _without_mig(host, found)
    if len(gpus) < 2:
        alone = "one GPU" if len(found.gpus) == 1 else "fewer than two GPUs are not in MIG mode"
        return passed("one GPU: there are no links to check") if len(found.gpus) == 1 else skipped(alone)
    cut_off = _cut_off(found, gpus)
    if cut_off:
        return failed(
            "NVLink between each two GPUs that have it",
            "; ".join(cut_off),
            advice=_HINT,
            evidence=_rows(found, [text.split()[0] for text in cut_off]),
        )
    board, smi = board_of(host), host.facts.smi
    if isinstance(smi, Unknown) and host.facts.smi_trouble is SmiTrouble.OTHER:
        # What the cards are, and which of them are in MIG mode, was asked for, and the answer cannot be read.
        return unknown(smi)
    kind = board["kind"] if board else "not-known"
    if kind == "switched":
        assert board is not None
        return _switched(host, found, gpus, board)
    if kind == "cube":
        assert board is not None
        return _cube(found, gpus, int(board["links"]))
    if not any(found.nvlinks(gpu) for gpu in gpus):
        if kind == "not-known":
            return skipped("no NVLink, and the GPUs' model is not known")
        return skipped("these boards have no NVLink" if kind == "none" else "no NVLink bridge is fitted")
    if kind != "pairs" and (odd := _odd_in_mesh(found, gpus)):
        return warned(
            "as many links between each two GPUs", "; ".join(odd[:4]), advice=_HINT, evidence=tuple(odd)
        )
    return _bridged(found, gpus, kind)


def _without_mig(host: Judged, found: Topology) -> tuple[str, ...]:
    smi = host.facts.smi
    sliced = set() if isinstance(smi, Unknown) else {f"GPU{gpu.index}" for gpu in smi.gpus if has_mig(gpu)}
    return tuple(gpu for gpu in found.gpus if gpu not in sliced)


def board_of(host: Judged) -> dict[str, Any] | None:
    """The row of the one model that all GPUs are of; None where they differ or are not known."""
    smi = host.facts.smi
    if isinstance(smi, Unknown):
        return None
    names = {gpu.name for gpu in smi.gpus}
    name = names.pop() if len(names) == 1 else None
    if not isinstance(name, str):
        return None
    rows: Iterable[dict[str, Any]] = table("boards")["boards"]
    return next(row for row in rows if re.fullmatch(row["name"], name))


def _cut_off(found: Topology, gpus: tuple[str, ...]) -> list[str]:
    """GPUs that reach none while others form a mesh; an odd card beside a bridged pair is none of them."""
    reached = {gpu: len(found.nvlinks(gpu)) for gpu in gpus}
    meshed = [gpu for gpu in gpus if reached[gpu] >= 2]
    alone = [gpu for gpu in gpus if not reached[gpu]]
    if not meshed or not alone:
        return []
    peers = Counter(link for gpu in meshed for link in found.nvlinks(gpu).values()).most_common(1)[0][0]
    return [
        f"{gpu} falls back to PCIe towards all {len(found.gpus) - 1} others; its peers have NV{peers}"
        for gpu in alone
    ]


def _switched(host: Judged, found: Topology, gpus: tuple[str, ...], board: dict[str, Any]) -> Verdict:
    links = {(a, b): found.nvlinks(a).get(b, 0) for a in gpus for b in gpus if a < b}
    full = int(board["links"])
    expected = f"NV{full} between each two GPUs"
    if not any(links.values()):
        what = f"no NVLink between any two of {len(gpus)} GPUs"
        if is_vm(host):
            return warned(
                expected,
                f"{what}: the hypervisor gives this virtual machine none",
                advice="Ask the provider for NVLink, or expect PCIe's bandwidth between the GPUs.",
            )
        return failed(expected, what, advice="Look at the fabric manager and the fabric's state.")
    direct = (
        len(gpus) <= 4 and len(set(links.values())) == 1 and next(iter(links.values())) in board["direct"]
    )
    short = [
        f"{a} and {b} have NV{n}" if n else f"{a} and {b} have none"
        for (a, b), n in links.items()
        if n < full
    ]
    if short and not direct:
        return failed(
            expected,
            f"{short[0]}" + (f", and {len(short) - 1} more pairs are short" if len(short) > 1 else ""),
            advice=_HINT,
            evidence=tuple(short[:_SHOWN]),
        )
    return passed(f"NV{min(links.values())} between each two of {len(gpus)} GPUs", expected=expected)


def _cube(found: Topology, gpus: tuple[str, ...], links: int) -> Verdict:
    """Eight GPUs show all their links; a host with fewer of them shows those of the cards it has."""
    counts = {gpu: sum(found.nvlinks(gpu).values()) for gpu in gpus}
    expected = f"{links} links a GPU"
    short = [f"{gpu} has {n} of {links} links" for gpu, n in counts.items() if n < links]
    if short and len(found.gpus) >= 8:
        return failed(expected, "; ".join(short[:4]), advice=_HINT, evidence=tuple(short))
    if not all(counts.values()):
        return failed(
            expected, "; ".join(f"{gpu} has no link" for gpu, n in counts.items() if not n), advice=_HINT
        )
    return passed(f"the cube mesh's links between {len(gpus)} GPUs", expected=expected)


def _bridged(found: Topology, gpus: tuple[str, ...], kind: str) -> Verdict:
    """Bridged cards: what is joined is joined with one number of links, and no second card is left over."""
    reached = {gpu: found.nvlinks(gpu) for gpu in gpus}
    numbers = Counter(n for others in reached.values() for n in others.values())
    alone = [gpu for gpu in gpus if not reached[gpu]]
    expected = "all bridged, with as many links each" if kind == "pairs" else "the same NVLink for each GPU"
    if len(numbers) > 1 and kind == "pairs":
        common = numbers.most_common(1)[0][0]
        odd = [f"{a} and {b} have NV{n}" for a in gpus for b, n in reached[a].items() if a < b and n < common]
        if odd:
            return warned(expected, f"{'; '.join(odd[:4])}, others NV{common}", advice=_HINT)
    if len(alone) > 1:
        return warned(
            expected,
            f"{', '.join(alone)} have no bridge, others have",
            advice="Look whether a bridge is missing or badly seated.",
        )
    said = ", ".join(f"NV{n}" for n in sorted(numbers))
    return passed(f"{said} between {len(gpus) - len(alone)} of {len(gpus)} GPUs", expected=expected)


def _odd_in_mesh(found: Topology, gpus: tuple[str, ...]) -> list[str]:
    """Pairs with fewer links than most have: where most are joined alike it is a mesh, of whichever model."""
    links = {(a, b): found.nvlinks(a).get(b, 0) for a in gpus for b in gpus if a < b}
    common, times = Counter(links.values()).most_common(1)[0]
    if not common or 2 * times <= len(links):
        return []
    return [
        f"{a} and {b} have {f'NV{n}' if n else 'none'}, most NV{common}"
        for (a, b), n in links.items()
        if n < common
    ]


def _rows(found: Topology, gpus: list[str]) -> tuple[str, ...]:
    return tuple(
        f"{a}: " + " ".join(str(found.links.get((a, b), "?")) for b in found.gpus) for a in gpus[:_SHOWN]
    )


@control(
    "topology.nic-locality",
    "Each GPU of a fabric board has a NIC on its own side of the machine",
    severity=Severity.LOW,
    needs=("gpu.answers", "topology.readable"),
)
def nic_locality(host: Judged) -> Verdict:
    found = _table(host)
    if isinstance(found, Verdict):
        return found
    if not found.nics:
        return skipped("the table has no NIC")
    near = {
        gpu: (nics, found.links.get((gpu, nics[0].label)))
        for gpu in found.gpus
        if (nics := found.nearest_nics(gpu))
    }
    told = tuple(
        f"{gpu}: {', '.join(nic.label for nic in nics[:4])} over {link}" for gpu, (nics, link) in near.items()
    )
    far = [gpu for gpu, (_, link) in near.items() if link in ("SYS", "SOC")]
    if is_vm(host) and far:
        return skipped("a virtual machine shows its hypervisor's bus, not the machine's")
    if far and isinstance(host.facts.smi, Unknown) and "nvidia-smi.query" in host.facts.recording.items:
        # Whether the model has a fabric was to be asked; a recording of the table alone is judged by itself.
        return unknown(host.facts.smi)
    board = board_of(host)
    switched = board is not None and board["kind"] == "switched"
    if far and switched and len(found.nics) > 1:
        return warned(
            "a NIC nearer than the other socket",
            f"{', '.join(far)}: each NIC is behind the other socket",
            advice="Its traffic to other hosts crosses the sockets: look at which slots the NICs sit in.",
            evidence=told,
        )
    return passed(f"{len(found.nics)} NICs for {len(found.gpus)} GPUs", evidence=told)
