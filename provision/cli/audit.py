"""`gpu-provision audit`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from provision.errors import Usage

from .asking import host_key_question
from .options import HostOptions, host_options
from .output import check, writing

if TYPE_CHECKING:
    from provision.profile.model import Profile
    from provision.report.model import Judgement


@click.command()
@click.argument("hosts", nargs=-1, metavar="[HOST...]")
@click.option(
    "--recording",
    "recordings",
    multiple=True,
    metavar="FILE",
    help="Judge a saved recording instead of a host. Repeatable.",
)
@click.option(
    "--format", "form", type=click.Choice(["text", "json", "junit"]), default="text", show_default=True
)
@click.option("--out", metavar="FILE", help="Write the report there instead of to standard output.")
@host_options
def audit(
    hosts: tuple[str, ...], recordings: tuple[str, ...], form: str, out: str | None, options: HostOptions
) -> int:
    """Judge hosts, or saved recordings, against a profile. Nothing on a host is changed."""
    if bool(hosts) == bool(recordings):
        raise Usage("give HOST, or --recording FILE", do="one or the other")
    check(out)
    taken = datetime.now(UTC)
    name, judged, groups = _recorded(recordings, options) if recordings else _live(hosts, options)
    # Not before the hosts are asked: what judges and prints is loaded while they answer.
    from provision.report import documents, exits
    from provision.report.model import Audit
    from provision.runs.drift import drift

    differ = drift(judged, groups)
    report = Audit(profile=name, taken=f"{taken:%Y-%m-%dT%H:%M:%SZ}", hosts=judged, drift=differ)
    with writing(out) as stream:
        if form == "json":
            stream.write(documents.dump(documents.audit(report)))
        elif form == "junit":
            from provision.report import junit

            stream.write(junit.audit(report))
        else:
            from provision.report.text.audit import audit as print_audit
            from provision.report.text.lines import console

            from .mending import mend

            print_audit(report, console(stream), mend(options))
    return exits.of_audit(judged)


Groups = dict[str, tuple[str, ...]]


def _live(hosts: tuple[str, ...], options: HostOptions) -> tuple[str, tuple[Judgement, ...], Groups]:
    from provision.runs.auditing import audit as flow
    from provision.runs.drift import groups_of

    from .hosts import resolve_hosts

    managed = resolve_hosts(hosts, options)
    profiles = ", ".join(sorted({host.profile.name for host in managed}))
    judged = flow(managed, forks=options.forks, ask=host_key_question())
    return profiles, judged, groups_of(managed)


def _recorded(files: tuple[str, ...], options: HostOptions) -> tuple[str, tuple[Judgement, ...], Groups]:
    from provision.runs.look import judge

    from .saved import load

    profile = _profile(options)
    judged = tuple(judge(load(file), profile).judgement for file in files)
    return profile.name, judged, {profile.name: tuple(host.host for host in judged)}


def _profile(options: HostOptions) -> Profile:
    """The profile that recordings are held against: they come without an inventory."""
    from provision.profile import presets, settings
    from provision.profile.compose import compose
    from provision.profile.peers import with_peers

    name, base = presets.load(options.profile) if options.profile else ("default", {})
    return with_peers(compose(name, base, {}, settings.parse(options.settings)), None)
