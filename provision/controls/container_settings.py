"""Controls of docker's settings: that docker can read them, and that they are what the profile wants."""

from __future__ import annotations

from ..facts.containers import DAEMON_JSON
from ..facts.docker_flags import TWICE_ALLOWED
from ..facts.known import Absent, Unknown
from ..facts.versions import compare_debian, upstream
from ..planners import container_toolkit as planner
from ..planners import docker_settings
from ..planners.docker_engine import UNIT
from .compare import files, units
from .container import ROLE, docker_of
from .model import Disrupts, Judged, Severity, Verdict, control, failed, passed, skipped, unknown

_SHOWN = 6
# Docker before this release starts neither with an empty daemon.json nor with one that has a byte order mark:
# 20.10.24 of Debian 12 was tried and does not, 26.1.5 of Debian 13 does.
_READS_ALL = "23.0"


@control(
    "container.settings",
    "docker gives containers what the profile says",
    severity=Severity.MEDIUM,
    role=ROLE,
    disrupts=Disrupts.CONTAINERS,
    needs=("container.runtime",),
)
def settings(host: Judged) -> Verdict:
    engine = docker_of(host)
    if isinstance(engine, Verdict):
        return engine
    if engine.build == "snap":
        return skipped("docker comes from a snap")
    if not planner.asked(host.profile):
        return skipped("the profile says nothing about containers")
    for fact in (host.facts.docker_flags, host.facts.units):
        if isinstance(fact, Unknown):
            return unknown(fact)
    if isinstance(found := host.facts.daemon_json, Unknown) and _not_read(host):
        return unknown(found)
    whole = planner.wanted(host.facts, host.profile, host.stack)
    if whole.refused:
        # Each of these is a person's to lift; the other roles need not wait for that.
        return failed("the profile's settings, beside those of others", whole.refused, mendable=False)
    asked = docker_settings.settings(host.facts, host.profile)
    told = [*asked.steps, *files(host, whole.files, docker_settings.OURS)]
    if isinstance(host.facts.file(docker_settings.UNAPPLIED), str):
        told.append("docker was not restarted since its settings changed")
    states = units(host, whole.units, UNIT)
    if isinstance(states, Verdict):
        return states
    told += states
    shown = tuple(f"{'.'.join(path)}: {value}" for path, value in docker_settings.leaves(asked.values))
    if told:
        return failed("; ".join(shown), "; ".join(told), evidence=tuple(told))
    return passed(f"{len(shown)} settings as wanted", evidence=shown + tuple(w.says for w in asked.why))


def _not_read(host: Judged) -> bool:
    """Whether the file's text was not had. One that is no JSON, or no file at all, was looked at."""
    answer = host.facts.recording.file(DAEMON_JSON)
    return answer.silence is not None and not (answer.not_asked or "").startswith("it is a ")


@control(
    "container.daemon-json",
    "docker can read its settings",
    severity=Severity.HIGH,
    role=ROLE,
    disrupts=Disrupts.CONTAINERS,
)
def daemon_json(host: Judged) -> Verdict:
    found, flags = host.facts.daemon_json, host.facts.docker_flags
    if isinstance(found, Absent):
        return skipped(f"there is no {DAEMON_JSON}")
    if isinstance(found, Unknown):
        if _not_read(host):
            return unknown(found)
        return failed(
            "a JSON object",
            found.reason,
            advice="docker does not start with it, nor does a running one read it. Nothing here repairs a "
            "file that cannot be read: mend it by hand, and restart no docker before.",
            mendable=False,
        )
    if isinstance(flags, Unknown) and host.facts.recording.asked("docker.unit"):
        return unknown(flags)
    twice = set() if isinstance(flags, Unknown | Absent) else (set(found) & set(flags)) - TWICE_ALLOWED
    if twice:
        named = ", ".join(sorted(twice))
        return failed(
            "each setting in the file or on the command line",
            f"{named} in {DAEMON_JSON} and on the command line of {UNIT} ({' '.join(_words(host))})",
            advice="docker refuses to start with both: take one away, in a drop-in of docker.service.",
            mendable=False,
        )
    if isinstance(form := host.facts.daemon_json_form, str) and not _reads_all(host):
        return failed(
            "a JSON object that docker of any release reads",
            f"{DAEMON_JSON} {form}",
            advice=f"Docker before {_READS_ALL} does not start with it.",
        )
    return passed(f"{len(found)} settings", evidence=tuple(sorted(found))[:_SHOWN])


def _words(host: Judged) -> tuple[str, ...]:
    unit = host.facts.docker_unit
    return (
        () if isinstance(unit, Unknown | Absent) else tuple(w for line in unit.exec_start for w in line[1:])
    )


def _reads_all(host: Judged) -> bool:
    """Whether this docker is known to be one that reads an empty file and a byte order mark."""
    docker, engine = host.facts.docker, docker_of(host)
    version = "" if isinstance(docker, Unknown | Absent) else docker.version
    version = version or ("" if isinstance(engine, Verdict) else upstream(engine.version))
    return bool(version) and compare_debian(version, _READS_ALL) >= 0
