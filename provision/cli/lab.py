"""gpu-provision lab: hosts to try everything on, on this machine."""

from __future__ import annotations

import os
import sys

import click

RELEASES = ["bookworm", "trixie"]
KINDS = ["container", "vm"]


@click.group()
def lab() -> None:
    """Hosts to try everything on: Debian, booted on this machine, with a double in place of the GPUs."""


@lab.command()
@click.argument("name", required=False)
@click.option("--release", type=click.Choice(RELEASES), help="Debian release; bookworm where none is given.")
@click.option(
    "--kind",
    type=click.Choice(KINDS),
    help="Kind of host; container where none is given. A vm has its own kernel and NVMe disks.",
)
@click.option(
    "--gpus", metavar="MODEL:COUNT", help="GPUs of the double, several with commas. Without it: two A100s."
)
def up(name: str | None, release: str | None, kind: str | None, gpus: str | None) -> None:
    """Make a host and boot it, or boot again one that is off.

    Prints name, address, release and GPUs when its sshd answers.
    """
    from .. import lab as rooms

    host = rooms.up(
        name, release=release, kind=kind, gpus=gpus, say=lambda words: click.echo(words, err=True)
    )
    click.echo(f"{host.name}\t{host.address}\t{host.release}\t{host.gpus}")


@lab.command("list")
def list_() -> None:
    """List the hosts: name, state, kind, release, address and the GPUs of the double."""
    from .. import lab as rooms

    rows = [
        (host.name, host.state, host.kind, host.release, host.address, host.gpus) for host in rooms.hosts()
    ]
    if not rows:
        click.echo("no lab host; `gpu-provision lab up` makes one", err=True)
        return
    head = ("NAME", "STATE", "KIND", "RELEASE", "ADDRESS", "GPUS (DOUBLE)")
    widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head))]
    for row in [head, *rows]:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


@lab.command(context_settings={"ignore_unknown_options": True})
@click.argument("name")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def ssh(name: str, command: tuple[str, ...]) -> None:
    """Log in to a host as root, or run COMMAND there; standard input and the exit code pass through."""
    from .. import lab as rooms
    from ..errors import Failure
    from ..lab.needs import require_root
    from ..transport.ssh import fresh_args

    require_root()
    host = rooms.find(name)
    if host is None:
        raise Failure("there is no lab host of this name", host=name, do="gpu-provision lab list")
    sys.stdout.flush()
    argv = fresh_args(host.target())
    os.execvp(argv[0], [*argv, *command])


@lab.command()
@click.argument("name", required=False)
@click.option("--all", "everything", is_flag=True, help="Every host, and all that the lab changed here.")
def down(name: str | None, everything: bool) -> None:
    """Take a host down with all that is its own, or all hosts."""
    from .. import lab as rooms
    from ..errors import Usage

    if everything == (name is not None):
        raise Usage("name one host, or say --all")
    if name is not None:
        rooms.down(name)
    else:
        rooms.down_all()
