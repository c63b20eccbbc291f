"""`gpu-provision plan`."""

from __future__ import annotations

import click

from .asking import host_key_question
from .options import HostOptions, host_options


@click.command()
@click.argument("hosts", nargs=-1, required=True, metavar="HOST...")
@click.option("--diff", is_flag=True, help="Show what changes inside files.")
@click.option("--out", metavar="PLAN", help="Also save it, for bootstrap --plan.")
@host_options
def plan(hosts: tuple[str, ...], diff: bool, out: str | None, options: HostOptions) -> int:
    """Show what bootstrap would change on hosts, changing nothing.

    A plan saved with --out can be read and passed on; `bootstrap --plan` runs it later and refuses where the
    hosts are no longer as they were.
    """
    from provision.report import exits
    from provision.report.text.lines import console
    from provision.report.text.plan import plan as print_plan
    from provision.runs.planning import plan as flow

    from .hosts import resolve_hosts
    from .output import writing
    from .plans import save

    travellers = flow(resolve_hosts(hosts, options), forks=options.forks, ask=host_key_question())
    if out:
        save(out, travellers)
    with writing(None) as stream:
        shown = console(stream)
        for traveller in travellers:
            if traveller.plan:
                print_plan(traveller.plan, shown, diff=diff)
            elif traveller.failure:
                click.echo(str(traveller.failure), err=True)
    return exits.worst(t.failure.exit_code if t.failure else exits.OK for t in travellers)
