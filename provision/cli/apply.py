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

    from .going import go

    if unknown := [role for role in only if role not in role_order()]:
        raise Usage(f"there is no role {', '.join(unknown)}", do=f"the roles are {', '.join(role_order())}")
    if going.plan and (only or every):
        raise Usage("--plan runs what was saved: --only and --all-roles choose something else")
    words = [word for role in only for word in ("--only", role)] + ["--all-roles"] * every
    return go("apply", hosts, options, going, Asked(only=only, every=every), words)
