"""Controls of docker: whether a container gets GPUs, and whether docker's settings are what the profile
wants.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..facts.containers import DAEMON_JSON, Engine, snap_docker
from ..facts.docker_flags import TWICE_ALLOWED
from ..facts.known import Absent, Unknown
from ..facts.versions import compare_debian, upstream
from ..planners import container_toolkit as planner
from ..planners import docker_settings
from ..planners.container_sources import KEY, PATH
from ..planners.docker_engine import UNIT, names
from .compare import files, units
from .gpu import cards
from .model import (
    Disrupts,
    Judged,
    Severity,
    Status,
    Verdict,
    control,
    failed,
    passed,
    skipped,
    unknown,
    warned,
)

if TYPE_CHECKING:
    from ..facts.containers import Docker

ROLE = "container_toolkit"
RUNTIME = docker_settings.RUNTIME
TOOLKIT = "nvidia-container-toolkit"
_NONE = "docker is not installed"
_SHOWN = 6
# Docker before this release starts neither with an empty daemon.json nor with one that has a byte order mark:
# 20.10.24 of Debian 12 was tried and does not, 26.1.5 of Debian 13 does.
_READS_ALL = "23.0"


def docker_of(host: Judged) -> Engine | Verdict:
    """The docker engine of this host, on a host with GPUs to give to containers."""
    engines = host.facts.engines
    if isinstance(engines, Unknown):
        # Without the list of packages, docker's own answer tells that it is there.
        return unknown(engines) if isinstance(host.facts.docker, Unknown | Absent) else _unpackaged(host)
    ours = cards(host)
    if isinstance(ours, Verdict) and ours.status is Status.SKIP:
        return ours
    found = [engine for engine in engines if engine.name == "docker"]
    return found[0] if found else _unpackaged(host)


def _unpackaged(host: Judged) -> Engine | Verdict:
    docker, snap = host.facts.docker, snap_docker(host.facts.units)
    if snap is not None:
        return snap
    return (
        skipped(_NONE) if isinstance(docker, Unknown | Absent) else Engine("docker", "", "", docker.version)
    )


@control(
    "container.runtime",
    "docker gives GPUs to the containers that ask for them",
    severity=Severity.MEDIUM,
    role=ROLE,
    disrupts=Disrupts.CONTAINERS,
)
def runtime(host: Judged) -> Verdict:
    engine = docker_of(host)
    if isinstance(engine, Verdict):
        if _to_come(host, engine):
            return failed("docker, with NVIDIA's container toolkit", _NONE)
        return engine
    expected = f"the runtime {RUNTIME}, or a CDI specification"
    if engine.build == "snap":
        return warned(
            expected,
            "docker comes from a snap",
            advice="nvidia-ctk does not serve it by its defaults: its settings lie in "
            "/var/snap/docker/current/config/daemon.json. Use the distribution's or docker.com's packages.",
            mendable=False,
        )
    packages, docker, services = host.facts.packages, host.facts.docker, host.facts.units
    if not isinstance(packages, Unknown) and packages.get(TOOLKIT) is None:
        return warned(
            expected,
            f"docker {engine.version} is there, {TOOLKIT} is not",
            advice='A container that asks for GPUs ends with `could not select device driver "" with '
            "capabilities: [[gpu]]`.",
        )
    if not isinstance(docker, Unknown | Absent):
        return _running(docker, host, expected)
    unit = None if isinstance(services, Unknown | Absent) else services.get(UNIT)
    if unit is not None and unit.exists and not unit.runs:
        return failed("docker runs", f"{UNIT} is {unit.active}")
    return unknown(docker) if isinstance(docker, Unknown) else unknown("docker's own program is not there")


def _running(docker: Docker, host: Judged, expected: str) -> Verdict:
    specs, settings, started = host.facts.cdi, host.facts.daemon_json, host.facts.docker_started
    written = settings.get("runtimes", {}) if isinstance(settings, dict) else {}
    if not isinstance(started, Unknown) and started.before_the_hook:
        return failed(
            expected,
            "docker started before the toolkit came",
            advice="It looks for the toolkit only then: `docker run --gpus` ends with `could not select "
            "device driver`. Restart docker when no container is running.",
        )
    if RUNTIME in docker.runtimes:
        return passed(f"runtime {RUNTIME} of docker {docker.version}", expected=expected)
    by_cdi = not isinstance(specs, Unknown) and any(spec.kind == "nvidia.com/gpu" for spec in specs)
    if by_cdi and docker.cdi_dirs:
        return passed(f"CDI, docker {docker.version}", expected=expected)
    if isinstance(written, dict) and RUNTIME in written:
        return failed(
            expected,
            f"{DAEMON_JSON} names the runtime, and docker was not restarted since",
            advice="Restart docker when no container is running.",
        )
    return failed(
        expected,
        f"docker {docker.version} knows {', '.join(sorted(docker.runtimes)) or 'no runtime'}",
        advice="`nvidia-ctk runtime configure --runtime=docker` adds it; docker then has to be restarted.",
    )


@control(
    "container.toolkit",
    "NVIDIA's container toolkit is one set at one release, held, from the repository that the profile names",
    severity=Severity.MEDIUM,
    role=ROLE,
)
def toolkit(host: Judged) -> Verdict:
    engine, packages, holds = docker_of(host), host.facts.packages, host.facts.holds
    if isinstance(engine, Verdict) and not _to_come(host, engine):
        return engine
    if isinstance(packages, Unknown):
        return unknown(packages)
    if isinstance(holds, Unknown):
        return unknown(holds)
    version, ours = planner.toolkit_version(host.facts, packages, host.profile), planner.asked(host.profile)
    told = []
    for name in names()["toolkit"]:
        package = packages.get(name)
        if package is None:
            told.append(f"{name} is not installed")
        elif package.version != version:
            told.append(f"{name} is at {package.version}")
        elif ours and name not in holds:
            told.append(f"{name} is not held")
    archive = planner.archive(host.facts, packages, host.profile)
    if archive.refused:
        return failed("the repository that the profile names", archive.refused, mendable=False)
    told += files(host, archive.files, PATH, KEY) if ours else []
    expected = f"version {version or 'of one release'}{', held' if ours else ''}"
    if told:
        return failed(expected, "; ".join(told), evidence=tuple(told))
    return passed(expected, expected=expected)


def _to_come(host: Judged, verdict: Verdict) -> bool:
    """Whether docker is not there and the profile wants it installed."""
    return verdict.actual == _NONE and bool(host.profile["container_toolkit_install_docker"])


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
