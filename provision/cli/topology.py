"""`gpu-provision topology`: what lies between each two GPUs and NICs of a host."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import click

from provision.errors import Failure, Usage
from provision.facts import cpu_list, system
from provision.facts import topology as facts
from provision.facts.known import Unknown
from provision.planners import bindings
from provision.planners.bindings_files import document as binding_document
from provision.report import bindings as forms

from .options import HostOptions, host_options

if TYPE_CHECKING:
    from provision.facts.system import Cpu
    from provision.recording.model import Recording

SCHEMA = "gpu-provision/topology/1"
_NOT_JUDGED = 3


@click.command()
@click.argument("host", required=False)
@click.option("--recording", "file", metavar="FILE", help="Read a saved recording in place of a host.")
@click.option("--bindings", "bound", is_flag=True, help="CPUs, memory and NICs of each GPU, for launchers.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@host_options
@click.pass_context
def topology(
    ctx: click.Context,
    /,
    host: str | None,
    file: str | None,
    bound: bool,
    as_json: bool,
    options: HostOptions,
) -> None:
    """Show what lies between each two GPUs and NICs of a host.

    HOST is a host as everywhere, or `-` to read the text of `nvidia-smi topo -m` from standard input.
    """
    if (host is None) == (file is None):
        raise Usage("give one HOST, `-`, or one --recording FILE")
    name, read, cpu = _read(host, file, options)
    made = bindings.bindings(read, cpu) if bound else ()
    if as_json:
        more = (
            {}
            if not bound
            else {"bindings": [] if isinstance(made, Unknown) else list(map(binding_document, made))}
        )
        click.echo(json.dumps(document(name, read) | more, indent=2))
    elif not isinstance(read, Unknown) and not isinstance(made, Unknown):
        click.echo(forms.text(made) if bound else text(read))
    read = made if isinstance(made, Unknown) else read
    if isinstance(read, Unknown):
        click.echo(f"gpu-provision: {name}: {read.reason}", err=True)
        ctx.exit(_NOT_JUDGED)


def _read(
    host: str | None, file: str | None, options: HostOptions
) -> tuple[str, facts.Topology | Unknown, Cpu | Unknown]:
    if host == "-":
        read = facts.parse(sys.stdin.buffer.read().decode("utf-8", "replace"))
        return "standard input", read, Unknown("a table alone tells nothing of the host's cores")
    if file is not None:
        from .saved import load

        recording = load(file)
    else:
        recording = _recorded(host or "", options)
    return recording.host, facts.topology(recording.answer(facts.ITEM)), system.cpu(recording.answer("cpu"))


def _recorded(host: str, options: HostOptions) -> Recording:
    from provision.recording import remote
    from provision.runs.fleet import Fleet

    from .hosts import resolve_hosts

    managed = resolve_hosts((host,), options)
    if len(managed) != 1:
        raise Usage(f"{host} is a group of {len(managed)} hosts; topology shows one host")
    with Fleet(managed, options.forks, once=True, by_password=True) as fleet:
        taken = fleet.reach(lambda line: remote.record(line.session, target=line.managed.target))[
            managed[0].name
        ]
    if isinstance(taken, Failure):
        raise taken
    return taken


def document(host: str, read: facts.Topology | Unknown) -> dict[str, Any]:
    """The JSON document; with `unknown` and no devices where the topology could not be read."""
    if isinstance(read, Unknown):
        return {"schema": SCHEMA, "host": host, "unknown": read.reason, "gpus": [], "nics": [], "links": {}}
    labels = (*read.gpus, *(nic.label for nic in read.nics))
    return {
        "schema": SCHEMA,
        "host": host,
        "complete": read.complete,
        "asymmetric": [list(pair) for pair in read.asymmetric],
        "mesh": read.mesh,
        "without_nvlink": list(read.cut_off),
        "gpus": [
            {
                "name": gpu,
                "cpu_affinity": _known(read.cpu_affinity[gpu]),
                "numa_nodes": _known(read.numa[gpu]),
                "gpu_numa_id": _known(read.gpu_numa_id[gpu]),
                "nearest_nics": [_known(nic.device) or nic.label for nic in read.nearest_nics(gpu)],
            }
            for gpu in read.gpus
        ],
        "nics": [{"name": nic.label, "device": _known(nic.device)} for nic in read.nics],
        "links": {a: {b: _known(read.link(a, b)) for b in labels if b != a} for a in labels},
    }


def text(read: facts.Topology) -> str:
    """The matrix and, a line a GPU, what is near it."""
    labels = (*read.gpus, *(nic.label for nic in read.nics))
    rows = [("", *labels), *((a, *(_known(read.link(a, b)) or "?" for b in labels)) for a in labels)]
    width = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width[n]) for n, cell in enumerate(row)).rstrip() for row in rows]
    lines += ["", _summary(read), ""]
    for gpu in read.gpus:
        near = ", ".join(_known(nic.device) or nic.label for nic in read.nearest_nics(gpu)) or "none"
        nodes = read.numa[gpu]
        numa = "unknown" if isinstance(nodes, Unknown) else cpu_list.show(nodes)
        cpus = _known(read.cpu_affinity[gpu]) or "unknown"
        lines.append(f"{gpu}: CPUs {cpus}, NUMA node {numa}, nearest NICs {near}")
    named = [
        f"{nic.label} is {nic.device}" for nic in read.nics if _known(nic.device) not in (None, nic.label)
    ]
    lines += ["", ", ".join(named)] if named else []
    return "\n".join(lines)


def _summary(read: facts.Topology) -> str:
    if len(read.gpus) == 1:
        says = "One GPU: there are no links between GPUs."
    elif read.mesh is not None:
        says = f"{len(read.gpus)} GPUs with {read.mesh} between each two."
    else:
        says = f"{len(read.gpus)} GPUs with different links between them."
    if read.cut_off:
        says += f" {', '.join(read.cut_off)} reaches no other over NVLink, while the others have it."
    if read.asymmetric:
        says += (
            " The two ends tell different things for "
            + ", ".join("-".join(pair) for pair in read.asymmetric)
            + "."
        )
    if not read.complete:
        says += " The table is not complete: `?` marks pairs that it lacks."
    return says


def _known(value: Any) -> Any:
    return None if isinstance(value, Unknown) else list(value) if isinstance(value, tuple) else value
