"""`gpu-provision history`."""

from __future__ import annotations

import click


@click.command()
@click.argument("host", metavar="HOST")
def history(host: str) -> int:
    """List what was done to a host from this machine, newest first. HOST is named as it was named then."""
    from provision.report.text.lines import duration, printable
    from provision.runs.history import history as read

    found = read(host)
    for past in found:
        took = f" in {duration(past.seconds)}" if past.seconds else ""
        click.echo(f"{past.run}  {past.command}  {past.state}{took}{'' if past.ended else ', it was killed'}")
        if past.roles:
            click.echo(f"    ran {', '.join(past.roles)}")
        if past.snapshot:
            click.echo(f"    snapshot {past.snapshot}")
        if past.trouble:
            click.echo(f"    {printable(past.trouble.splitlines()[0])}")
        click.echo(f"    {past.path}")
    if not found:
        click.echo(f"no run from this machine had a host named {host}", err=True)
    return 0
