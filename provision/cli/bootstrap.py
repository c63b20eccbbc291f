"""`gpu-provision bootstrap`."""

from __future__ import annotations

import click

from .going import Going, going_options
from .options import HostOptions, host_options


@click.command()
@click.argument("hosts", nargs=-1, required=True, metavar="HOST...")
@going_options
@host_options
def bootstrap(hosts: tuple[str, ...], going: Going, options: HostOptions) -> int:
    """Take hosts from an address to proven GPU servers.

    Each host is recorded and judged; the plan is shown and has to be agreed to; its roles are run; then the
    host is recorded again and its behaviour is proven from outside. Of several hosts one goes first with what
    could cut the line, and if it has to be put back there, the others are not begun.
    """
    from provision.plan.asked import Asked
    from provision.runs.bootstrap import COMMAND

    from .going import go

    return go(COMMAND, hosts, options, going, Asked())
