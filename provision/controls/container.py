"""Controls of docker and the toolkit: whether a container gets the GPUs that it asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..facts.containers import DAEMON_JSON, Engine, snap_docker
from ..facts.known import Absent, Unknown
from ..planners import container_toolkit as planner
from ..planners import docker_settings
from ..planners.container_sources import KEY, PATH
from ..planners.docker_engine import UNIT, names
from .compare import files
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


def docker_of(host: Judged) -> Engine | Verdict:
    """The docker engine of this host, on a host with GPUs to give to containers."""
    engines = host.facts.engines
    if isinstance(engines, Unknown):
        # Without the list of packages, docker's own answer tells that it is there; but one from a snap only
        # its unit tells.
        if isinstance(host.facts.docker, Unknown | Absent):
            return unknown(engines)
        units = host.facts.units
        if isinstance(units, Unknown) and host.facts.recording.asked("units"):
            return unknown(units)
        return _unpackaged(host)
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
