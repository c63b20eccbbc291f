"""`gpu-provision record`: the raw answers of hosts, to look at, to keep, or to pass on."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from provision.errors import Failure, Usage

from .options import HostOptions, host_options
from .output import writing

if TYPE_CHECKING:
    from provision.recording.model import Recording


@click.command()
@click.argument("hosts", metavar="HOST...", nargs=-1, required=True)
@click.option(
    "--out", metavar="FILE|DIR", help="Write there instead of to standard output; a folder for several hosts."
)
@click.option(
    "--redact", is_flag=True, help="Replace names, addresses and serial numbers, to pass a recording on."
)
@host_options
@click.pass_context
def record(
    ctx: click.Context, /, hosts: tuple[str, ...], out: str | None, redact: bool, options: HostOptions
) -> None:
    """Record the raw state of hosts. Nothing on them changes.

    One host is printed as a JSON document; several go into the folder that --out names, a file each.
    `gpu-provision audit --recording` reads them.
    """
    from provision.recording import remote
    from provision.report import exits
    from provision.runs.fleet import Fleet

    from .hosts import resolve_hosts

    managed = resolve_hosts(hosts, options)
    place = _place(out, several=len(managed) > 1)
    failures: list[Failure] = []
    with Fleet(managed, options.forks, once=True, by_password=True) as fleet:
        ask = _ask if sys.stdin.isatty() and sys.stderr.isatty() else None
        taken = fleet.reach(
            lambda line: remote.record(line.session, target=line.managed.target, redact=redact), ask
        )
    for name, recording in taken.items():
        if isinstance(recording, Failure):
            failures.append(recording)
        else:
            try:
                _write(recording, name, place)
            except Failure as e:
                failures.append(e)
    for failure in failures:
        click.echo(f"gpu-provision: {failure}", err=True)
    ctx.exit(exits.worst(f.exit_code for f in failures))


def _ask(question: str) -> bool:
    return click.confirm(question, err=True)


def _place(out: str | None, *, several: bool) -> Path | None:
    """Where to write; None for standard output. A folder is made where several hosts need one."""
    if out is None:
        if several:
            raise Usage("several hosts do not fit into one document", do="name a folder with --out DIR")
        return None
    path = Path(out)
    if several or out.endswith("/"):
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as e:
            raise Usage(f"--out {out}: {e.strerror}") from e
    elif not path.is_dir() and not path.parent.is_dir():
        raise Usage(f"--out {out}: there is no folder {path.parent}")
    return path


def _write(recording: Recording, name: str, place: Path | None) -> None:
    text = json.dumps(recording.as_dict(), indent=1) + "\n"
    if place is None:
        click.echo(text, nl=False)
        return
    if place.is_dir():
        # A redacted file must not carry the name that its text hides.
        shown = recording.host if recording.host != name else name
        place = place / (re.sub(r"[^\w.@-]+", "_", shown) + ".json")
    # Not for everybody's eyes, as it lists accounts, packages and open ports: the new file is mode 0600.
    with writing(str(place)) as file:
        file.write(text)
    click.echo(f"{name}: {place}", err=True)
