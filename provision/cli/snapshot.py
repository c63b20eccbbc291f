"""`gpu-provision snapshot` and `gpu-provision snapshots`."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from provision.errors import Usage

from .asking import agreed, host_key_question
from .options import HostOptions, host_options

if TYPE_CHECKING:
    from provision.runs.managed import Managed


@click.command()
@click.argument("hosts", nargs=-1, required=True, metavar="HOST...")
@host_options
def snapshot(hosts: tuple[str, ...], options: HostOptions) -> int:
    """Keep on each host what is needed to put it back.

    Packages with their .deb files, holds, the files that roles write, units and GPU settings. Data on disks,
    /boot and the kernel are no part of it.
    """
    from provision.report import exits
    from provision.report.progress import progress
    from provision.runs.directory import RunDirectory
    from provision.runs.snapshots import take

    from .hosts import resolve_hosts

    managed = resolve_hosts(hosts, options)
    directory = RunDirectory.new("snapshot", datetime.now(UTC))
    with progress([host.name for host in managed], sys.stderr) as shown:
        travellers = take(
            managed, directory, why="asked for", progress=shown, forks=options.forks, ask=host_key_question()
        )
    for traveller in travellers:
        if traveller.failure:
            click.echo(str(traveller.failure), err=True)
        else:
            click.echo(f"{traveller.name}: {directory.path.name}")
    return exits.worst(t.failure.exit_code if t.failure else exits.OK for t in travellers)


@click.command()
@click.argument("what", type=click.Choice(["list", "show", "diff", "prune"]))
@click.argument("host", metavar="HOST")
@click.argument("names", nargs=-1, metavar="[SNAPSHOT]...")
@click.option("--yes", is_flag=True, help="Do not ask before taking snapshots away.")
@host_options
def snapshots(what: str, host: str, names: tuple[str, ...], yes: bool, options: HostOptions) -> int:
    """List, show, compare or take away the snapshots of a host.

    `show` tells what is in one, the newest where none is named; `diff` compares two; `prune` takes those away
    that are named, or all but the first and the newest.
    """
    from .hosts import resolve_hosts

    managed = resolve_hosts([host], options)
    if len(managed) != 1:
        raise Usage(f"{host} is {len(managed)} hosts: name one")
    do = {"list": _list, "show": _show, "diff": _diff}
    return _prune(managed[0], names, yes) if what == "prune" else do[what](managed[0], names)


def _list(host: Managed, names: tuple[str, ...]) -> int:
    from provision.runs.snapshots import listed

    if names:
        raise Usage("`snapshots list` takes a host alone; `show` tells of one snapshot")
    found = listed(host, ask=host_key_question())
    for each in found:
        beside = f"  {each.outside['identifier']}" if each.outside.get("identifier") else ""
        size = f"{each.size / 1e6:.1f} MB"
        click.echo(f"{each.name}  {each.taken}  {size}  {each.debs} packages  {each.why}{beside}".rstrip())
    if not found:
        click.echo(f"{host.name} has no snapshot", err=True)
    return 0


def _show(host: Managed, names: tuple[str, ...]) -> int:
    from provision.runs.snapshots import listed, shown

    ask = host_key_question()
    wanted = names or tuple(each.name for each in listed(host, ask=ask)[-1:])
    if not wanted:
        raise Usage(f"{host.name} has no snapshot")
    for kept in shown(host, wanted, ask=ask).values():
        click.echo(
            f"{kept.name}, taken {kept.taken} in {kept.seconds:.1f} s{f' ({kept.why})' if kept.why else ''}"
        )
        click.echo(f"  {len(kept.packages)} packages installed, {len(kept.holds)} held")
        for name in sorted(kept.debs):
            again = ", packed again from the host's files" if name in kept.repacked else ""
            click.echo(f"  comes back without an archive: {name} {kept.packages[name]}{again}")
        for path, was in sorted(kept.files.items()):
            if was:
                click.echo(f"  comes back: {path}")
        for path, was in sorted(kept.beside.items()):
            if was:
                click.echo(f"  is kept to be compared: {path}")
        for line in (*kept.modules, *(kept.settings or ())):
            click.echo(f"  {line}")
        if kept.outside:
            command, rc, said = (kept.outside.get(key) for key in ("command", "rc", "identifier"))
            click.echo(f"  outside: `{command}` ended with {rc} and said {said!r}")
        click.echo("  not in it: data of disks, /boot, the EFI partition, the kernel")
    return 0


def _diff(host: Managed, names: tuple[str, ...]) -> int:
    from provision.plan.back import between
    from provision.runs.snapshots import shown

    if len(names) != 2:
        raise Usage("`snapshots diff` compares two snapshots: name both, the older one first")
    found = shown(host, names, ask=host_key_question())
    for line in between(found[names[0]], found[names[1]]):
        click.echo(line)
    return 0


def _prune(host: Managed, names: tuple[str, ...], yes: bool) -> int:
    from provision.report.progress import progress
    from provision.runs.directory import RunDirectory
    from provision.runs.snapshots import listed, prune

    ask = host_key_question()
    there = [each.name for each in listed(host, ask=ask)]
    if missing := [name for name in names if name not in there]:
        raise Usage(
            f"{host.name} has no snapshot {', '.join(missing)}", do=f"it has {', '.join(there) or 'none'}"
        )
    going = names or tuple(there[1:-1])
    if not going:
        click.echo("there is nothing to take away", err=True)
        return 0
    if not agreed(f"Take away {', '.join(going)} of {host.name}?", yes=yes):
        return 1
    directory = RunDirectory.new("snapshots", datetime.now(UTC))
    with progress([host.name], sys.stderr) as shown:
        traveller = prune(host, going, directory, progress=shown, ask=ask)
    if traveller.failure:
        raise traveller.failure
    for name in going:
        click.echo(f"{host.name}: {name} is gone")
    return 0
