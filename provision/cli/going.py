"""What the commands that change hosts have in common: their options, and the way through a run."""

from __future__ import annotations

import sys
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from provision.errors import Interrupted, Usage

from .asking import agreed, host_key_question

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from provision.plan.asked import Asked
    from provision.runs.bootstrap import Course
    from provision.runs.directory import RunDirectory
    from provision.runs.host import Traveller
    from provision.runs.managed import Managed

    from .options import F, HostOptions

    Prepare = Callable[[Sequence[Managed], RunDirectory], tuple[Sequence[Managed], Course]]


@dataclass(frozen=True)
class Going:
    """How a person wants a run to go."""

    yes: bool
    plan: str | None
    resume: bool
    canary: bool
    reboot: str
    form: str


_OPTIONS: tuple[Callable[[Any], Any], ...] = (
    click.option("--yes", is_flag=True, help="Do not ask before changing the hosts."),
    click.option(
        "--plan",
        metavar="PLAN",
        help="Run this saved plan and nothing else; refused where a host has changed.",
    ),
    click.option(
        "--resume", is_flag=True, help="Go on with the last such run; hosts that it finished are left alone."
    ),
    click.option("--canary", is_flag=True, help="One host goes the whole way before the others begin."),
    click.option(
        "--reboot",
        type=click.Choice(["never", "allow"]),
        default="never",
        show_default=True,
        help="Whether a host may be rebooted where only that helps.",
    ),
    click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True),
)


def going_options(command: F) -> F:
    """Add the options; the command receives them as one argument `going: Going`."""

    @wraps(command)
    def gathered(**arguments: Any) -> Any:
        own = {f.name: arguments.pop(f.name) for f in fields(Going)}
        return command(going=Going(**own), **arguments)

    decorated: Any = gathered
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    result: F = decorated
    return result


def go(
    command: str,
    hosts: Sequence[str],
    options: HostOptions,
    going: Going,
    asked: Asked,
    words: Sequence[str] = (),
    *,
    prepare: Prepare | None = None,
    notes: Callable[[Traveller], Iterable[str]] = lambda _: (),
    own: HostOptions | None = None,
) -> int:
    """Run `asked` on hosts and print what came of it; the exit code. `words` repeat the call's options.

    `prepare` gives the hosts as this run has them and what it adds to the common way; `notes` are lines about
    a host that are shown with its plan. `own` are the options as the person gave them, where `options` has
    more.
    """
    from provision.report import documents, exits
    from provision.report.progress import progress
    from provision.report.text.lines import console
    from provision.report.text.run import run as print_run
    from provision.runs.bootstrap import Consent, bootstrap
    from provision.runs.directory import RunDirectory

    from .hosts import resolve_hosts
    from .mending import mend, resume_command
    from .output import writing
    from .plans import load

    managed = resolve_hosts(hosts, options)
    if going.resume:
        managed = _unfinished(managed, command)
        if not managed:
            said = f"all of these hosts were finished by the last {command}; nothing is left to do"
            click.echo(said, err=True)
            return exits.OK
    asked = replace(asked, begun=going.resume)
    plans = load(going.plan, (host.name for host in managed)) if going.plan else {}
    more = [*words, *(("--plan", going.plan) if going.plan else ())]
    directory = RunDirectory.new(command, datetime.now(UTC))
    going_there, course = prepare(managed, directory) if prepare else (managed, None)
    try:
        report = bootstrap(
            going_there,
            directory,
            consent=Consent(lambda travellers: _agreed(travellers, going.yes, notes), host_key_question()),
            progress=lambda planned: progress(planned, sys.stderr, dict(planned)),
            resume=resume_command(own or options, command, more),
            forks=options.forks,
            may_reboot=going.reboot == "allow",
            canary=going.canary,
            command=command,
            asked=lambda host: replace(asked, saved=plans.get(host)),
            course=course,
        )
        with writing(None) as stream:
            if going.form == "json":
                stream.write(documents.dump(documents.run(report)))
            else:
                print_run(report, console(stream), mend(options))
    except KeyboardInterrupt as e:
        raise Interrupted(f"interrupted; the state of each host is in {directory.states_file}") from e
    return exits.of_run(report)


def _agreed(travellers: Sequence[Traveller], yes: bool, notes: Callable[[Traveller], Iterable[str]]) -> bool:
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
            for note in notes(traveller):
                click.echo(f"  {note}", err=True)
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
