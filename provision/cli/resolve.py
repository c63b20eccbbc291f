"""`gpu-provision resolve`: the matching set for GPUs and a distribution, with reasons."""

from __future__ import annotations

import json
import sys
from datetime import date
from typing import TYPE_CHECKING

import click

from provision.errors import Usage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provision.catalog.stack import Driver, Part, Stack


@click.command()
@click.option(
    "--gpu", "gpus", multiple=True, metavar="NAME|VENDOR:DEVICE", help="A GPU of the host; repeatable."
)
@click.option(
    "--os", "system", metavar="ID", help="Distribution, such as debian12 (default: this machine's)."
)
@click.option("--arch", metavar="x86_64|aarch64", help="Architecture (default: this machine's).")
@click.option(
    "--driver", metavar="BRANCH|VERSION", help="A driver branch or release, such as 580 or 580.95.05."
)
@click.option(
    "--cuda", multiple=True, metavar="X.Y", help="A toolkit; repeatable, the first is the default one."
)
@click.option("--cudnn", metavar="X[.Y]")
@click.option("--nccl", metavar="X.Y")
@click.option(
    "--source",
    type=click.Choice(["auto", "nvidia", "ubuntu", "debian", "rhel"]),
    default="auto",
    show_default=True,
    help="Where the driver comes from.",
)
@click.option("--modules", type=click.Choice(["open", "proprietary"]), help="Flavour of the kernel modules.")
@click.option(
    "--on",
    "day",
    type=click.DateTime(["%Y-%m-%d"]),
    metavar="YYYY-MM-DD",
    help="Judge support on this day (default: today).",
)
@click.option("--json", "as_json", is_flag=True, help="The document gpu-provision/stack/1.")
def resolve(
    gpus: tuple[str, ...],
    system: str | None,
    arch: str | None,
    driver: str | None,
    cuda: tuple[str, ...],
    cudnn: str | None,
    nccl: str | None,
    source: str,
    modules: str | None,
    day: object,
    as_json: bool,
) -> None:
    """The matching driver, CUDA, cuDNN and NCCL for GPUs, with a reason for every choice.

    Needs no network and no GPU. Without knowledge of a host's archives it names a branch and a minimum, never
    a release as if it were certain. Exit code 1 where nothing fits, with the demands that clash.
    """
    from provision.catalog import Demands
    from provision.catalog import resolve as answer

    system, arch = system or _own_system(), arch or _own_arch()
    today = day.date() if hasattr(day, "date") else date.today()
    demands = Demands(driver, cuda or None, cudnn, nccl, source, modules or "auto")
    stack = answer(gpus, os=system, arch=arch, today=today, demands=demands)
    if as_json:
        click.echo(json.dumps(stack.as_dict(), indent=2))
    else:
        _show(stack, f"{', '.join(gpus) or 'no GPU named'} on {system}, {arch}, as of {today.isoformat()}")
    if not stack.satisfiable:
        click.get_current_context().exit(1)


def _own_system() -> str:
    import platform

    try:
        release = platform.freedesktop_os_release()
    except OSError as e:
        raise Usage(
            "this machine does not say what distribution it is", do="Name the host's with --os."
        ) from e
    return f"{release['ID']}{release.get('VERSION_ID', '')}"


def _own_arch() -> str:
    import platform

    return platform.machine()


def _show(stack: Stack, title: str) -> None:
    from rich.table import Table

    from provision.report.screen import Screen

    console = Screen(width=None if sys.stdout.isatty() else 120, highlight=False)
    console.print(title, style="bold", soft_wrap=True)
    if not stack.satisfiable:
        console.print("no set satisfies this:", style="red")
        for conflict in stack.conflicts:
            console.print()
            console.print(f"  {' + '.join(conflict.demands)}", style="bold", markup=False)
            console.print(f"    {conflict.says}", markup=False)
            console.print(f"    to relax: {conflict.relax}", markup=False)
            for source in conflict.source.split("; "):
                console.print(f"    {source}", style="dim", markup=False, soft_wrap=True)
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in ("", "version", "packages", "pin"):
        table.add_column(column, overflow="fold")
    for cells in _parts(stack):
        table.add_row(*cells)
    console.print(table)
    if stack.driver:
        console.print(f"moves together: {' '.join(stack.driver.move_together)}", markup=False)
        console.print(f"never beside it: {' '.join(stack.driver.never_mixed)}", markup=False)
        console.print()
    notes = _Notes()
    for warning in stack.warnings:
        console.print(f"[yellow]warning[/] ({warning.kind}): ", end="")
        console.print(warning.says + notes.mark(warning.source), markup=False)
    console.print()
    for reason in stack.reasons:
        console.print(f"{reason.about}: {reason.says}{notes.mark(reason.source)}", markup=False)
    console.print()
    for line in notes.lines:
        console.print(line, style="dim", markup=False, soft_wrap=True)


class _Notes:
    """Documents numbered as they are first named, so that each stands once below the reasons."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def mark(self, sources: str) -> str:
        """The numbers of these documents, such as ` [1][3]`."""
        found = [s for s in sources.split("; ") if s]
        marks = [f"[{self._numbers.setdefault(s, len(self._numbers) + 1)}]" for s in found]
        return " " + "".join(marks) if marks else ""

    @property
    def lines(self) -> list[str]:
        return [f"[{number}] {source}" for source, number in self._numbers.items()]


def _parts(stack: Stack) -> Iterator[tuple[str, str, str, str]]:
    if stack.driver:
        yield "driver", _driver(stack.driver), " ".join(stack.driver.packages), _pin(stack.driver)
    named: list[tuple[str, Part | None]] = [("CUDA toolkit", stack.cuda)]
    named += [("", part) for part in stack.cuda_others]
    named += [("cuDNN", stack.cudnn), ("NCCL", stack.nccl)]
    named += [("container toolkit", stack.container_toolkit), ("fabric manager", stack.fabric_manager)]
    for name, part in named:
        if part:
            yield name, part.version, " ".join(part.packages), " ".join(part.pin)


def _driver(driver: Driver) -> str:
    version = driver.version or f"{driver.minimum} or newer"
    return f"R{driver.branch}: {version}, {driver.modules} modules, from {driver.source}"


_PINS = {
    "pinning-package": "first, by itself: ",
    "dnf-module": "dnf module enable ",
    "dnf-versionlock": "dnf versionlock ",
    "hold": "",
}


def _pin(driver: Driver) -> str:
    return _PINS[driver.pin_by] + " ".join(driver.pin) if driver.pin else "hold the packages together"
