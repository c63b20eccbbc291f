"""`gpu-provision catalog`: look into the catalog's tables."""

from __future__ import annotations

import json
import sys

import click


@click.command()
@click.argument("subject", type=click.Choice(["gpus", "drivers", "cuda", "cudnn", "nccl"]))
@click.argument("filter_", metavar="[FILTER]", required=False, default="")
@click.option("--json", "as_json", is_flag=True, help="A list of objects, one a row.")
def catalog(subject: str, filter_: str, as_json: bool) -> None:
    """Look into the catalog: which GPUs, driver branches and releases it knows, and from where.

    FILTER keeps the rows in which each of its words stands, such as `catalog gpus "a100 sxm"`. Exit code 1
    where no row is left.
    """
    from provision.catalog.listing import listing

    found = listing(subject).filtered(filter_)
    if as_json:
        click.echo(json.dumps(found.as_dicts(), indent=2))
    elif found.rows:
        _show(found.columns, found.rows)
    else:
        click.echo(f"no row of {subject} has {filter_!r} in it", err=True)
    if not found.rows:
        click.get_current_context().exit(1)


def _show(columns: tuple[str, ...], rows: tuple[tuple[str, ...], ...]) -> None:
    from rich.table import Table

    from provision.report.screen import Screen

    wide = max(120, sum(max(len(r[i]) for r in (columns, *rows)) + 2 for i in range(len(columns))))
    console = Screen(width=None if sys.stdout.isatty() else wide, highlight=False)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*row)
    console.print(table)
