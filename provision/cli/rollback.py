"""`gpu-provision rollback`."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from provision.errors import Interrupted, Usage

from .asking import agreed, host_key_question
from .options import HostOptions, host_options

if TYPE_CHECKING:
    from provision.runs.rollback import WayBack


@click.command()
@click.argument("host", metavar="HOST")
@click.argument("snapshot", required=False)
@click.option("--yes", is_flag=True, help="Do not ask before changing the host.")
@click.option(
    "--reboot",
    type=click.Choice(["never", "allow"]),
    default="never",
    show_default=True,
    help="Whether the host may be rebooted where only that helps.",
)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@host_options
def rollback(host: str, snapshot: str | None, yes: bool, reboot: str, form: str, options: HostOptions) -> int:
    """Put a host back as a snapshot has it, the newest where none is named.

    Packages come from the .deb files that the snapshot keeps, so no archive is needed; what came by us since
    is taken away; holds, files and settings are as they were. What others changed stays. A rollback that was
    interrupted is finished by running it again.
    """
    from provision.report import documents, exits
    from provision.report.progress import progress
    from provision.report.text.lines import console
    from provision.report.text.run import run as print_run
    from provision.runs.directory import RunDirectory
    from provision.runs.rollback import COMMAND
    from provision.runs.rollback import rollback as flow

    from .hosts import resolve_hosts
    from .mending import mend
    from .output import writing

    managed = resolve_hosts([host], options)
    if len(managed) != 1:
        raise Usage(f"{host} is {len(managed)} hosts: name one")
    directory = RunDirectory.new(COMMAND, datetime.now(UTC))
    try:
        report = flow(
            managed[0],
            snapshot,
            directory,
            agreed=lambda way: _agreed(way, yes),
            progress=lambda: progress([managed[0].name], sys.stderr),
            ask=host_key_question(),
            may_reboot=reboot == "allow",
        )
    except KeyboardInterrupt as e:
        raise Interrupted(f"interrupted; the state of the host is in {directory.states_file}") from e
    with writing(None) as stream:
        if form == "json":
            stream.write(documents.dump(documents.run(report)))
        else:
            print_run(report, console(stream), mend(options))
    return exits.of_run(report)


def _agreed(way: WayBack, yes: bool) -> bool:
    click.echo(f"{way.host}  back to {way.snapshot}, taken {way.taken}", err=True)
    for change in way.changes:
        click.echo(f"    {change.what}", err=True)
    if not way.changes:
        click.echo("    nothing that can be seen from here", err=True)
    if way.others:
        more = f" and {len(way.others) - 5} more" if len(way.others) > 5 else ""
        click.echo(f"    stays as it is: {', '.join(way.others[:5])}{more}", err=True)
    return agreed(f"Put {way.host} back?", yes=yes)
