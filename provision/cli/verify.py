"""`gpu-provision verify`."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from .asking import agreed, host_key_question
from .options import HostOptions, host_options

if TYPE_CHECKING:
    from provision.runs.host import Traveller


@click.command()
@click.argument("hosts", nargs=-1, required=True, metavar="HOST...")
@click.option("--disruptive", is_flag=True, help="Also prove what needs a reboot: the host is rebooted.")
@click.option("--yes", is_flag=True, help="Do not ask before rebooting (with --disruptive).")
@host_options
def verify(hosts: tuple[str, ...], disruptive: bool, yes: bool, options: HostOptions) -> int:
    """Prove the behaviour of hosts from outside. Nothing is changed; --disruptive reboots them."""
    from provision.report import exits
    from provision.report.progress import progress
    from provision.report.text.lines import console
    from provision.report.text.run import checks as print_checks
    from provision.runs.directory import RunDirectory
    from provision.runs.verifying import verify as flow

    from .hosts import resolve_hosts
    from .output import writing

    managed = resolve_hosts(hosts, options)
    names = [host.name for host in managed]
    if disruptive and not agreed(f"Reboot {', '.join(names)}?", yes=yes):
        return exits.FAILED
    directory = RunDirectory.new("verify", datetime.now(UTC))
    with progress(names, sys.stderr) as shown:
        travellers = flow(
            managed,
            directory,
            progress=shown,
            forks=options.forks,
            disruptive=disruptive,
            ask=host_key_question(),
        )
    with writing(None) as stream:
        out = console(stream)
        for traveller in travellers:
            if traveller.failure:
                click.echo(str(traveller.failure), err=True)
            else:
                out.print(traveller.name, style="bold")
                print_checks(traveller.checks, out)
    return exits.worst(_code(traveller) for traveller in travellers)


def _code(traveller: Traveller) -> int:
    from provision.report import exits

    if traveller.failure:
        return traveller.failure.exit_code
    failed = not traveller.checks or any(check.failed for check in traveller.checks)
    return exits.FAILED if failed else exits.OK
