"""`gpu-provision apply`."""

from __future__ import annotations

import click

from provision.errors import Usage

from .going import Going, going_options
from .options import HostOptions, host_options


@click.command()
@click.argument("hosts", nargs=-1, required=True, metavar="HOST...")
@click.option("--only", metavar="ROLE", multiple=True, help="Run this role and no other. Repeatable.")
@click.option("--all-roles", "every", is_flag=True, help="Run every role, also where nothing is amiss.")
@going_options
@host_options
def apply(
    hosts: tuple[str, ...], only: tuple[str, ...], every: bool, going: Going, options: HostOptions
) -> int:
    """Run roles on hosts: those that findings ask for, or some of them.

    It goes the way of bootstrap. With --only what other roles are for is left alone, and is no part of the
    result either; a role that holds already is not run, unless --all-roles says so.
    """
    from provision.plan.asked import Asked
    from provision.profile.tree import role_order
    from provision.runs.planning import SNAPSHOT

    from .going import go

    roles = [role for role in role_order() if role != SNAPSHOT]
    if unknown := [role for role in only if role not in roles]:
        raise Usage(f"there is no role {', '.join(unknown)} to run", do=f"the roles are {', '.join(roles)}")
    if going.plan and (only or every):
        raise Usage("--plan runs what was saved: --only and --all-roles choose something else")
    words = [word for role in only for word in ("--only", role)] + ["--all-roles"] * every
    return go("apply", hosts, options, going, Asked(only=only, every=every), words)
