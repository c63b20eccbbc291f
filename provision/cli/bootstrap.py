"""`gpu-provision bootstrap`."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from provision.errors import Interrupted, Usage

from .asking import agreed, host_key_question
from .options import HostOptions, host_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from provision.runs.host import Traveller
    from provision.runs.managed import Managed


@click.command()
@click.argument("hosts", nargs=-1, required=True, metavar="HOST...")
@click.option("--yes", is_flag=True, help="Do not ask before changing the hosts.")
@click.option(
    "--resume", is_flag=True, help="Go on with the last bootstrap; hosts that it finished are left alone."
)
@click.option("--canary", is_flag=True, help="One host goes the whole way before the others begin.")
@click.option(
    "--reboot",
    type=click.Choice(["never", "allow"]),
    default="never",
    show_default=True,
    help="Whether a host may be rebooted where only that helps.",
)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@host_options
def bootstrap(
    hosts: tuple[str, ...],
    yes: bool,
    resume: bool,
    canary: bool,
    reboot: str,
    form: str,
    options: HostOptions,
) -> int:
    """Take hosts from an address to proven GPU servers.

    Each host is recorded and judged; the plan is shown and has to be agreed to; its roles are run; then the
    host is recorded again and its behaviour is proven from outside. Of several hosts one goes first with what
    could cut the line, and if it has to be put back there, the others are not begun.
    """
    from provision.report import documents, exits
    from provision.report.progress import progress
    from provision.report.text.lines import console
    from provision.report.text.run import run as print_run
    from provision.runs.bootstrap import COMMAND, Consent
    from provision.runs.bootstrap import bootstrap as flow
    from provision.runs.directory import RunDirectory

    from .hosts import resolve_hosts
    from .mending import mend, resume_command
    from .output import writing

    managed = resolve_hosts(hosts, options)
    if resume:
        managed = _unfinished(managed, COMMAND)
        if not managed:
            click.echo(
                "all of these hosts were finished by the last bootstrap; nothing is left to do", err=True
            )
            return exits.OK
    directory = RunDirectory.new(COMMAND, datetime.now(UTC))
    try:
        report = flow(
            managed,
            directory,
            consent=Consent(lambda travellers: _agreed(travellers, yes), host_key_question()),
            progress=lambda planned: progress(planned, sys.stderr, dict(planned)),
            resume=resume_command(options),
            forks=options.forks,
            may_reboot=reboot == "allow",
            canary=canary,
        )
        with writing(None) as stream:
            if form == "json":
                stream.write(documents.dump(documents.run(report)))
            else:
                print_run(report, console(stream), mend(options))
    except KeyboardInterrupt as e:
        raise Interrupted(f"interrupted; the state of each host is in {directory.states_file}") from e
    return exits.of_run(report)


def _agreed(travellers: Sequence[Traveller], yes: bool) -> bool:
    """Show every plan and ask, where there is something to do; if not, the report will say all there is."""
    from provision.report.text.lines import console
    from provision.report.text.plan import plan as print_plan

    going = [t.name for t in travellers if t.goes_on]
    if not going:
        return True
    out = console(sys.stderr)
    for traveller in travellers:
        if traveller.plan:
            print_plan(traveller.plan, out)
        elif traveller.failure:
            click.echo(str(traveller.failure), err=True)
    return agreed(f"Change {', '.join(going)} as shown?", yes=yes)


def _unfinished(managed: Sequence[Managed], command: str) -> tuple[Managed, ...]:
    """Hosts that their last run of this command did not finish. Raises Usage where one was in no run."""
    from provision.runs.directory import last_states

    states = last_states(command, (host.name for host in managed))
    if new := [host.name for host in managed if host.name not in states]:
        raise Usage(
            f"there is nothing to resume: no earlier {command} had {', '.join(new)}",
            do="run it without --resume, or name the hosts as they were named then",
        )
    return tuple(host for host in managed if states[host.name] != "done")
