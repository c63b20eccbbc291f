"""`gpu-provision upgrade`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from provision.errors import Usage

from .going import Going, going_options
from .options import HostOptions, host_options

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from provision.runs.bootstrap import Course
    from provision.runs.directory import RunDirectory
    from provision.runs.host import Traveller
    from provision.runs.managed import Managed


@click.command()
@click.argument("hosts", nargs=-1, required=True, metavar="HOST...")
@click.option("--driver", metavar="BRANCH|VERSION", help="The driver to move to, such as 580 or 580.95.05.")
@click.option("--cuda", metavar="X.Y", help="The toolkit to have as the default; those that are there stay.")
@click.option("--no-snapshot", is_flag=True, help="Go without a way back.")
@click.option(
    "--on-failure",
    type=click.Choice(["rollback", "keep"]),
    default="rollback",
    show_default=True,
    help="What becomes of a host that does not hold what it held before.",
)
@going_options
@host_options
def upgrade(
    hosts: tuple[str, ...],
    driver: str | None,
    cuda: str | None,
    no_snapshot: bool,
    on_failure: str,
    going: Going,
    options: HostOptions,
) -> int:
    """Move the driver or CUDA of hosts as one set, and put a host back where it does not prove itself.

    The plan says what moves from where to where. What cannot work is refused before anything is touched. A
    snapshot comes first; then the set moves, the host is rebooted where that is needed and allowed, and what
    held before has to hold after.
    """
    from provision.plan.asked import Asked
    from provision.plan.upgrade import ROLES

    from .going import go

    if going.plan:
        raise Usage("an upgrade makes its own plan", do="`bootstrap --plan` runs a saved one")
    settings = _settings(driver, cuda)
    words = [
        word for name, value in (("--driver", driver), ("--cuda", cuda)) if value for word in (name, value)
    ]
    words += ["--no-snapshot"] * no_snapshot + ["--on-failure", on_failure]

    def prepare(managed: Sequence[Managed], directory: RunDirectory) -> tuple[Sequence[Managed], Course]:
        from provision.runs.upgrade import Upgrade, earlier, with_snapshot

        names = [host.name for host in managed]
        snapshots, before = earlier(names) if going.resume else ({}, {})
        if not no_snapshot:
            snapshots = {name: snapshots.get(name, directory.path.name) for name in names}
            why = f"before {' and '.join(settings)}"
            managed = [with_snapshot(host, snapshots[host.name], why) for host in managed]
        course = Upgrade(
            directory,
            {} if no_snapshot else snapshots,
            before,
            go_back_on_failure=on_failure == "rollback",
            may_reboot=going.reboot == "allow",
            forks=options.forks,
        )
        return managed, course

    moved = replace(options, settings=(*options.settings, *settings))
    asked = Asked(only=ROLES, snapshot=not no_snapshot)
    return go("upgrade", hosts, moved, going, asked, words, prepare=prepare, notes=_notes, own=options)


def _settings(driver: str | None, cuda: str | None) -> tuple[str, ...]:
    """The variables that --driver and --cuda stand for. Raises Usage where neither says where to."""
    if driver is None and cuda is None:
        raise Usage(
            "say what to move, and where to: --driver or --cuda",
            do="`gpu-provision catalog drivers` lists branches",
        )
    found = []
    if driver is not None:
        if not all(part.isdigit() for part in driver.split(".")):
            raise Usage(f"--driver {driver}: a branch such as 580, or a version such as 580.95.05")
        found.append(f"nvidia_driver_version={driver}" if "." in driver else f"nvidia_driver_branch={driver}")
    if cuda is not None:
        found.append(f"cuda_versions=['{cuda}']")
    return tuple(found)


def _notes(traveller: Traveller) -> Iterable[str]:
    from provision.plan.upgrade import notes

    return notes(traveller.look.judged) if traveller.look else ()
