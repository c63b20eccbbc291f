"""`nvidia-smi topo -m`: what lies between each two GPUs and NICs of a host.

The table comes with tabs or, pasted, with spaces; the header may be underlined with terminal codes
and wrapped; NIC columns have device names or NICn with a legend; affinity columns came with
versions. A table whose header and rows do not agree is unknown and the disagreement is named:
a wrong pair is worse than none.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from . import cpu_list
from .answers import output, plain, quote
from .known import Unknown, Unsupported
from .record import record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..recording.model import Answer

ITEM = "nvidia-smi.topology"
# The legend of nvidia-smi; SOC is what SYS was called up to R384.
_LINK = re.compile(r"X|SYS|SOC|NODE|PHB|PXB|PIX|NV\d{1,2}")
_GPU = re.compile(r"GPU\d{1,3}")
_GLUED = re.compile(r"(?:NIC|GPU)\d+\S*(?:NIC|GPU)\d")
_COLUMNS = (("gpu_numa", r"GPU\s+NUMA\s+ID"), ("cpu", r"CPU\s+Affinity"), ("numa", r"NUMA\s+Affinity"))
_NEAREST_FIRST = ("PIX", "PXB", "PHB", "NODE", "SYS", "SOC")


@record
class Nic:
    """A network device of the table. `device` is the RDMA device's name, for NICn from the legend."""

    label: str
    device: str | Unknown


@record
class Topology:
    """The whole table.

    `complete` is False where rows of NICs are missing: pairs of those are unknown, all others hold.
    `cpu_affinity` has CPU lists as the kernel writes them (`0-31,64-95`), `numa` the NUMA nodes.
    """

    gpus: tuple[str, ...]
    nics: tuple[Nic, ...]
    links: Mapping[tuple[str, str], str]
    cpu_affinity: Mapping[str, str | Unknown]
    numa: Mapping[str, tuple[int, ...] | Unknown]
    gpu_numa_id: Mapping[str, int | Unknown]
    complete: bool

    def link(self, a: str, b: str) -> str | Unknown:
        """What lies between two labels: X, NV#, PIX, PXB, PHB, NODE or SYS."""
        found = self.links.get((a, b)) or self.links.get((b, a))
        return found if found is not None else Unknown(f"the table has no pair {a} and {b}", ITEM)

    @property
    def asymmetric(self) -> tuple[tuple[str, str], ...]:
        """Pairs whose two ends tell different things."""
        return tuple(
            (a, b) for (a, b), link in self.links.items() if a < b and self.links.get((b, a), link) != link
        )

    def nvlinks(self, gpu: str) -> Mapping[str, int]:
        """Other GPUs that this one reaches over NVLink, with the number of bonded links."""
        found = {}
        for other in self.gpus:
            link = self.links.get((gpu, other), "")
            if link.startswith("NV"):
                found[other] = int(link[2:])
        return found

    @property
    def mesh(self) -> str | None:
        """The one link that lies between each two GPUs; None where pairs differ or there is one GPU."""
        kinds = {self.links[a, b] for a in self.gpus for b in self.gpus if a != b}
        return kinds.pop() if len(kinds) == 1 else None

    @property
    def cut_off(self) -> tuple[str, ...]:
        """GPUs that reach no other over NVLink, on a host where others do."""
        reached = {gpu: self.nvlinks(gpu) for gpu in self.gpus}
        return tuple(gpu for gpu in self.gpus if not reached[gpu] and any(reached.values()))

    def nearest_nics(self, gpu: str) -> tuple[Nic, ...]:
        """The NICs with the shortest way to a GPU; empty where the table has none."""
        for kind in _NEAREST_FIRST:
            near = tuple(nic for nic in self.nics if self.links.get((gpu, nic.label)) == kind)
            if near:
                return near
        return ()


def topology(answer: Answer) -> Topology | Unknown:
    text = output(answer)
    return text if isinstance(text, Unknown) else parse(text)


@record
class _Header:
    labels: tuple[str, ...]
    columns: tuple[tuple[str, int], ...]


def parse(text: str) -> Topology | Unknown:
    """The table of a text that may have other lines before and after it."""
    text = plain(text)
    lines = [line.expandtabs(8) for line in text.splitlines()]
    header, body = _header(lines)
    if isinstance(header, Unknown):
        said = quote(text)
        return Unknown(f"{header.reason}: {said}" if said else "nvidia-smi topo -m printed nothing", ITEM)
    rows: dict[str, list[str]] = {}
    tails: dict[str, dict[str, str]] = {}
    for line in lines[body:]:
        if re.match(r"\s*(Legend:|NIC Legend:)", line) or (len(rows) == len(header.labels) and line.strip()):
            break
        if not line.strip():
            continue
        wrong = _row(line, header, rows, tails)
        if wrong is not None:
            return wrong
    missing = header.labels[len(rows) :]
    if any(_GPU.fullmatch(label) for label in missing):
        return _malformed(f"the header names {missing[0]}, and there is no row for it")
    nics = _nics(header.labels, lines)
    gpus = tuple(label for label in header.labels if _GPU.fullmatch(label))
    ended = text.endswith("\n") or "Legend:" in text
    return Topology(
        gpus,
        nics,
        {(a, b): link for a, cells in rows.items() for b, link in zip(header.labels, cells, strict=True)},
        {gpu: _cpus(tails[gpu].get("cpu")) for gpu in gpus},
        {gpu: _nodes(tails[gpu].get("numa")) for gpu in gpus},
        {gpu: _numa_id(tails[gpu].get("gpu_numa")) for gpu in gpus},
        complete=not missing and ended,
    )


def _malformed(what: str) -> Unknown:
    return Unknown(f"topology table malformed: {what}", ITEM)


def _is_row(line: str) -> bool:
    words = line.split()
    return len(words) > 1 and _LINK.fullmatch(words[1]) is not None


def _header(lines: list[str]) -> tuple[_Header | Unknown, int]:
    """The labels, and the line where the rows begin. Lines up to the first row belong to a wrapped header."""
    first = re.compile(r"\s*GPU\d")
    start = next((n for n, line in enumerate(lines) if first.match(line) and not _is_row(line)), None)
    if start is None:
        return Unknown("nvidia-smi topo -m printed no table", ITEM), 0
    end = next((n for n in range(start, len(lines)) if _is_row(lines[n])), None)
    if end is None:
        return _malformed("a header and no row"), 0
    joined = lines[start]
    for more in lines[start + 1 : end]:
        joined += "  " + more.strip()
    columns = []
    for name, pattern in _COLUMNS:
        if found := re.search(pattern, joined):
            columns.append((name, found.start()))
            joined = joined[: found.start()] + " " * len(found[0]) + joined[found.end() :]
    labels = tuple(joined.split())
    for label in labels:
        if _GLUED.search(label) or not re.fullmatch(r"[A-Za-z][\w.-]*", label) or _LINK.fullmatch(label):
            return _malformed(f"the header has {label!r} where one device should stand: {quote(joined)}"), 0
    if len(set(labels)) != len(labels):
        return _malformed("the header names a device twice"), 0
    return _Header(labels, tuple(sorted(columns, key=lambda column: column[1]))), end


def _row(
    line: str, header: _Header, rows: dict[str, list[str]], tails: dict[str, dict[str, str]]
) -> Unknown | None:
    words = [(found[0], found.start()) for found in re.finditer(r"\S+", line)]
    label = words[0][0]
    expected = header.labels[len(rows)] if len(rows) < len(header.labels) else None
    if label != expected:
        return _malformed(f"a row for {expected or 'nothing more'} was expected: {quote(line)}")
    cells: list[str] = []
    for word, _ in words[1:]:
        if not _LINK.fullmatch(word):
            break
        cells.append(word)
    if len(cells) != len(header.labels):
        return _malformed(f"row {label} has {len(cells)} cells, header {len(header.labels)}: {quote(line)}")
    if [n for n, cell in enumerate(cells) if cell == "X"] != [len(rows)]:
        return _malformed(f"row {label} has its X in the wrong place: {quote(line)}")
    tail = words[1 + len(cells) :]
    if _GPU.fullmatch(label):
        if len(tail) > len(header.columns):
            return _malformed(f"row {label} has {len(tail)} values after its cells: {quote(line)}")
        tails[label] = _tail(tail, header.columns)
    rows[label] = cells
    return None


def _tail(values: list[tuple[str, int]], columns: tuple[tuple[str, int], ...]) -> dict[str, str]:
    """Affinities by column: by count where none is missing, else those that stand below their heading."""
    if len(values) == len(columns):
        return {name: word for (name, _), (word, _) in zip(columns, values, strict=True)}
    at = {place: name for name, place in columns}
    return {at[place]: word for word, place in values if place in at}


def _cpus(text: str | None) -> str | Unknown:
    if text is None or text == "N/A":
        return Unsupported("the table names no CPUs", ITEM)
    return text if cpu_list.parse(text) is not None else Unknown(f"no CPU list: {text}", ITEM)


def _nodes(text: str | None) -> tuple[int, ...] | Unknown:
    if text is None or text == "N/A":
        return Unsupported("the table names no NUMA node", ITEM)
    nodes = cpu_list.parse(text)
    return Unknown(f"no NUMA node: {text}", ITEM) if nodes is None else nodes


def _numa_id(text: str | None) -> int | Unknown:
    if text is None or text == "N/A":
        return Unsupported("the GPU's memory is no NUMA node", ITEM)
    return int(text) if re.fullmatch(r"\d{1,5}", text) else Unknown(f"no NUMA node: {text}", ITEM)


def _nics(labels: tuple[str, ...], lines: list[str]) -> tuple[Nic, ...]:
    legend: dict[str, str] = {}
    for line in lines:
        if found := re.fullmatch(r"\s*(NIC\d+):\s*(\S+)\s*", line):
            legend[found[1]] = found[2]
    result = []
    for label in labels:
        if _GPU.fullmatch(label):
            continue
        numbered = re.fullmatch(r"NIC\d+", label) is not None
        nameless = Unknown(f"the legend does not name {label}", ITEM)
        result.append(Nic(label, legend.get(label, nameless) if numbered else label))
    return tuple(result)
