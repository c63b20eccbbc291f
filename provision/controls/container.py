"""Controls of container engines: whether a container gets GPUs, and keeps them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..facts.containers import DAEMON_JSON
from ..facts.known import ABSENT, Absent, Unknown
from ..facts.versions import same_driver
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
    from ..facts.containers import Docker, Engine

RUNTIME = "nvidia"
TOOLKIT = "nvidia-container-toolkit"
_LEGACY = ("nvidia-docker2", "nvidia-docker")
_SHOWN = 6


def _docker(host: Judged) -> Engine | Verdict:
    """The docker engine of this host, on a host with GPUs to give to containers."""
    engines = host.facts.engines
    if isinstance(engines, Unknown):
        # Without the list of packages, docker's own answer tells that it is there.
        return unknown(engines) if isinstance(host.facts.docker, Unknown | Absent) else _unpackaged(host)
    ours = cards(host)
    if isinstance(ours, Verdict) and ours.status is Status.SKIP:
        return ours
    found = [engine for engine in engines if engine.name == "docker"]
    return found[0] if found else skipped("docker is not installed")


def _unpackaged(host: Judged) -> Engine | Verdict:
    from ..facts.containers import Engine

    docker = host.facts.docker
    return (
        skipped("docker is not installed")
        if isinstance(docker, Unknown | Absent)
        else Engine("docker", "", "", docker.version)
    )


@control(
    "container.runtime",
    "docker gives GPUs to the containers that ask for them",
    severity=Severity.MEDIUM,
    disrupts=Disrupts.CONTAINERS,
)
def runtime(host: Judged) -> Verdict:
    engine = _docker(host)
    if isinstance(engine, Verdict):
        return engine
    expected = f"the runtime {RUNTIME}, or a CDI specification"
    if engine.build == "snap":
        return warned(
            expected,
            "docker comes from a snap",
            advice="nvidia-ctk does not serve it by its defaults: its settings lie in "
            "/var/snap/docker/current/config/daemon.json. Use the distribution's or docker.com's packages.",
        )
    packages, docker, settings = host.facts.packages, host.facts.docker, host.facts.daemon_json
    if not isinstance(packages, Unknown) and packages.get(TOOLKIT) is None:
        return warned(
            expected,
            f"docker {engine.version} is there, {TOOLKIT} is not",
            advice='A container that asks for GPUs ends with `could not select device driver "" with '
            "capabilities: [[gpu]]`.",
        )
    written = settings.get("runtimes", {}) if isinstance(settings, dict) else {}
    if not isinstance(docker, Unknown | Absent):
        return _running(docker, written, host, expected)
    if isinstance(settings, Unknown):
        return unknown(settings)
    return unknown(docker) if isinstance(docker, Unknown) else unknown("docker's own program is not there")


def _running(docker: Docker, written: object, host: Judged, expected: str) -> Verdict:
    specs = host.facts.cdi
    by_cdi = not isinstance(specs, Unknown) and any(spec.kind == "nvidia.com/gpu" for spec in specs)
    if RUNTIME in docker.runtimes:
        return passed(f"runtime {RUNTIME} of docker {docker.version}", expected=expected)
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
    "container.daemon-json",
    "docker can read its settings",
    severity=Severity.HIGH,
    disrupts=Disrupts.CONTAINERS,
)
def daemon_json(host: Judged) -> Verdict:
    settings, unit = host.facts.daemon_json, host.facts.docker_unit
    if isinstance(settings, Absent):
        return skipped(f"there is no {DAEMON_JSON}")
    if isinstance(settings, Unknown):
        answer = host.facts.recording.file(DAEMON_JSON)
        if answer.silence is not None or answer.denied:
            return unknown(settings)
        return failed(
            "a JSON object",
            settings.reason,
            advice="docker does not start with it, nor does a running one read it. Nothing here repairs a "
            "file that cannot be read: mend it by hand, and restart no docker before.",
        )
    twice = [
        word
        for word in ("-H", "--host")
        if not isinstance(unit, Unknown | Absent) and _has(unit.exec_start, word)
    ]
    if "hosts" in settings and twice:
        return failed(
            "hosts in the file or on the command line",
            f"hosts are named in {DAEMON_JSON} and by {twice[0]} of docker.service",
            advice="docker refuses to start with both: take one away, in a drop-in of docker.service.",
        )
    return passed(f"{len(settings)} settings", evidence=tuple(sorted(settings))[:_SHOWN])


def _has(commands: tuple[tuple[str, ...], ...], word: str) -> bool:
    return any(part == word or part.startswith(f"{word}=") for command in commands for part in command)


@control(
    "container.cgroup",
    "A reload of systemd takes no GPU away from a running container",
    severity=Severity.MEDIUM,
    disrupts=Disrupts.CONTAINERS,
)
def cgroup(host: Judged) -> Verdict:
    docker, nodes = host.facts.docker, host.facts.gpu_device_nodes
    engine = _docker(host)
    if isinstance(engine, Verdict):
        return engine
    if isinstance(docker, Absent):
        return skipped("docker is not installed")
    if isinstance(docker, Unknown):
        return unknown(docker)
    if isinstance(docker.cgroup_driver, Unknown):
        return unknown(docker.cgroup_driver)
    if docker.cgroup_driver != "systemd":
        return passed(f"cgroup driver {docker.cgroup_driver}")
    if RUNTIME not in docker.runtimes:
        return skipped(f"docker has no runtime {RUNTIME}")
    mode = _mode(host)
    if mode == "cdi":
        return passed("devices are given by CDI, which docker itself keeps")
    if isinstance(nodes, Unknown):
        return unknown(nodes)
    bare = [node.path for node in nodes if not node.char_link]
    if nodes and not bare:
        return passed("/dev/char has the links that systemd looks for")
    # NVIDIA/nvidia-container-toolkit issue 48: causes and ways around.
    return warned(
        "links in /dev/char, cgroup driver cgroupfs, or CDI",
        "cgroup driver systemd with the runtime's hook, and no links in /dev/char",
        advice="After `systemctl daemon-reload` containers lose their GPUs (`Failed to initialize NVML: "
        "Unknown Error`): `nvidia-ctk system create-dev-char-symlinks --create-all` at boot, or mode cdi.",
        evidence=tuple(bare[:_SHOWN]),
    )


def _mode(host: Judged) -> str:
    """The mode of the NVIDIA runtime: `cdi`, or `auto` where the settings name none."""
    text = host.facts.file("/etc/nvidia-container-runtime/config.toml")
    lines = text.splitlines() if isinstance(text, str) else []
    for line in lines:
        key, _, value = line.partition("=")
        if key.strip() == "mode":
            return value.strip().strip("\"'")
    return "auto"


@control(
    "container.cdi",
    "CDI specifications name the libraries of the driver that is there",
    severity=Severity.MEDIUM,
    needs=("driver.loaded-matches-installed",),
)
def cdi(host: Judged) -> Verdict:
    specs, loaded, smi = host.facts.cdi, host.facts.loaded_driver, host.facts.smi
    if isinstance(specs, Unknown):
        return unknown(specs)
    nvidias = [spec for spec in specs if spec.kind is None or spec.kind.startswith("nvidia.com/")]
    if not nvidias:
        return skipped("there is no CDI specification of NVIDIA's")
    version = None if isinstance(loaded, Unknown | Absent) else loaded.version
    if version is None and not isinstance(smi, Unknown) and isinstance(smi.driver_version, str):
        version = smi.driver_version
    if version is None:
        return unknown(loaded) if isinstance(loaded, Unknown) else skipped("no driver is loaded")
    old = [
        f"{spec.path} names {', '.join(spec.versions)}"
        for spec in nvidias
        if spec.versions and not all(same_driver(named, version) for named in spec.versions)
    ]
    if old:
        return failed(
            f"driver {version}",
            "; ".join(old[:3]),
            advice="Containers that ask by CDI do not start: `nvidia-ctk cdi generate "
            "--output=/etc/cdi/nvidia.yaml`, or start nvidia-cdi-refresh.service.",
        )
    return passed(f"{len(nvidias)} for driver {version}")


@control(
    "container.legacy-nvidia-docker2",
    "Nothing of the old nvidia-docker2 stands beside the container toolkit",
    severity=Severity.LOW,
    disrupts=Disrupts.CONTAINERS,
)
def legacy(host: Judged) -> Verdict:
    packages, sources = host.facts.packages, host.facts.apt_sources
    if isinstance(packages, Unknown):
        return unknown(packages)
    left = [f"{name} {p.version}" for name in _LEGACY if (p := packages.get(name)) is not None]
    known = () if isinstance(sources, Unknown) or sources is ABSENT else sources
    assert not isinstance(known, Absent)
    old = dict.fromkeys(
        s.path for s in known if any("nvidia.github.io/nvidia-docker" in uri for uri in s.uris)
    )
    left += [f"{path} names its repository" for path in old]
    if left:
        return warned(
            "the container toolkit alone",
            "; ".join(left),
            advice="nvidia-docker2 is retired: install the container toolkit, then purge it and its source.",
        )
    return passed("none") if packages.get(TOOLKIT) else skipped("the container toolkit is not installed")
