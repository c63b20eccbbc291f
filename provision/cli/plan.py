"""`gpu-provision plan`."""

from __future__ import annotations

import click

from .asking import host_key_question
from .options import HostOptions, host_options


@click.command()
@click.argument("hosts", nargs=-1, required=True, metavar="HOST...")
@click.option("--diff", is_flag=True, help="Show what changes inside files.")
@host_options
def plan(hosts: tuple[str, ...], diff: bool, options: HostOptions) -> int:
    """Show what bootstrap would change on hosts, changing nothing."""
    from provision.report import exits
    from provision.report.text.lines import console
    from provision.report.text.plan import plan as print_plan
    from provision.runs.planning import plan as flow

    from .hosts import resolve_hosts
    from .output import writing

    travellers = flow(resolve_hosts(hosts, options), forks=options.forks, ask=host_key_question())
    with writing(None) as stream:
        out = console(stream)
        for traveller in travellers:
            if traveller.plan:
                print_plan(traveller.plan, out, diff=diff)
            elif traveller.failure:
                click.echo(str(traveller.failure), err=True)
    return exits.worst(t.failure.exit_code if t.failure else exits.OK for t in travellers)
