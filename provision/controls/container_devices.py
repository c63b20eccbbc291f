"""Controls of what keeps GPUs in containers: control groups, CDI specifications, and no rival of the
toolkit.
"""

from __future__ import annotations

from ..facts.known import ABSENT, Absent, Unknown
from ..facts.versions import same_driver
from ..planners import container_devices as planner
from ..planners import container_toolkit
from ..planners.container_sources import retired_in
from ..planners.docker_engine import names
from .compare import files, units
from .container import ROLE, RUNTIME, TOOLKIT, docker_of
from .model import (
    Disrupts,
    Judged,
    Severity,
    Verdict,
    control,
    failed,
    passed,
    skipped,
    unknown,
    warned,
)

_SHOWN = 6
_FOLDER = "/etc/systemd/system/"


@control(
    "container.cgroup",
    "A reload of systemd takes no GPU away from a running container",
    severity=Severity.MEDIUM,
    role=ROLE,
    needs=("container.runtime",),
)
def cgroup(host: Judged) -> Verdict:
    docker, nodes = host.facts.docker, host.facts.gpu_device_nodes
    engine = docker_of(host)
    if isinstance(engine, Verdict):
        return engine
    if isinstance(docker, Absent):
        return skipped("docker's own program is not there")
    if isinstance(docker, Unknown):
        return unknown(docker)
    if isinstance(docker.cgroup_driver, Unknown):
        return unknown(docker.cgroup_driver)
    if docker.cgroup_driver != "systemd":
        return passed(f"cgroup driver {docker.cgroup_driver}")
    if RUNTIME not in docker.runtimes:
        return skipped(f"docker has no runtime {RUNTIME}")
    if planner.runtime_mode(host.facts) == "cdi":
        return passed("devices are given by CDI, which docker itself keeps")
    if isinstance(nodes, Unknown):
        return unknown(nodes)
    bare = planner.bare_nodes(host.facts)
    expected = "links in /dev/char, cgroup driver cgroupfs, or CDI"
    # NVIDIA/nvidia-container-toolkit issue 48: causes and ways around.
    advice = (
        "After `systemctl daemon-reload` containers lose their GPUs (`Failed to initialize NVML: "
        "Unknown Error`): "
        "`nvidia-ctk system create-dev-char-symlinks --create-all` at boot, or mode cdi."
    )
    if bare:
        return warned(
            expected,
            "cgroup driver systemd with the runtime's hook, and no links in /dev/char",
            advice=advice,
            evidence=bare[:_SHOWN],
        )
    later = _unlike(host, planner.LINKS_UNIT)
    if isinstance(later, Verdict):
        return later
    if later:
        return warned(expected, f"{'; '.join(later)}: after a boot nothing makes the links", advice=advice)
    return passed("/dev/char has the links that systemd looks for")


def _unlike(host: Judged, *named: str) -> list[str] | Verdict:
    """What of these units' files and states is not as the role wants it; nothing where the role has no
    say.
    """
    whole = container_toolkit.wanted(host.facts, host.profile, host.stack)
    if whole.refused or not container_toolkit.asked(host.profile):
        return []
    states = units(host, whole.units, *named)
    if isinstance(states, Verdict):
        return states
    return [*files(host, whole.files, *(f"{_FOLDER}{name}" for name in named)), *states]


@control(
    "container.cdi",
    "CDI specifications name the libraries of the driver that is there, and go on doing so",
    severity=Severity.MEDIUM,
    role=ROLE,
    needs=("driver.loaded-matches-installed", "container.runtime"),
)
def cdi(host: Judged) -> Verdict:
    specs, loaded, packages = host.facts.cdi, host.facts.loaded_driver, host.facts.packages
    if isinstance(specs, Unknown):
        return unknown(specs)
    nvidias = [spec for spec in specs if spec.kind is None or spec.kind.startswith("nvidia.com/")]
    engine = docker_of(host)
    ours = (
        container_toolkit.asked(host.profile)
        and not isinstance(engine, Verdict)
        and not isinstance(packages, Unknown)
        and packages.get(TOOLKIT) is not None
    )
    if not nvidias and not ours:
        return skipped("there is no CDI specification of NVIDIA's")
    version = planner.driver_now(host.facts)
    if version is None:
        return unknown(loaded) if isinstance(loaded, Unknown) else skipped("no driver is loaded")
    old = [
        f"{spec.path} names {', '.join(spec.versions)}"
        for spec in nvidias
        if spec.versions and not all(same_driver(named, version) for named in spec.versions)
    ]
    if old or not nvidias:
        return failed(
            f"driver {version}",
            "; ".join(old[:3]) or "there is no CDI specification of NVIDIA's",
            advice="Containers that ask by CDI do not start: `nvidia-ctk cdi generate "
            "--output=/etc/cdi/nvidia.yaml`, or start nvidia-cdi-refresh.service.",
        )
    later = _unlike(host, *planner.OUR_UNITS, *planner.THEIR_UNITS) if ours else []
    if isinstance(later, Verdict):
        return later
    if later:
        return warned(f"driver {version}, and the next one", "; ".join(later), evidence=tuple(later))
    return passed(f"{len(nvidias)} for driver {version}")


@control(
    "container.legacy-nvidia-docker2",
    "Nothing of the old nvidia-docker2 stands beside the container toolkit",
    severity=Severity.LOW,
    role=ROLE,
    disrupts=Disrupts.CONTAINERS,
)
def legacy(host: Judged) -> Verdict:
    packages, sources = host.facts.packages, host.facts.apt_sources
    if isinstance(packages, Unknown):
        return unknown(packages)
    left = [
        f"{name} {p.version}" for name in names()["legacy_packages"] if (p := packages.get(name)) is not None
    ]
    known = () if isinstance(sources, Unknown) or sources is ABSENT else sources
    assert not isinstance(known, Absent)
    left += [f"{path} names its repository" for path in dict.fromkeys(s.path for s in known if retired_in(s))]
    if left:
        whole = container_toolkit.wanted(host.facts, host.profile, host.stack)
        return warned(
            "the container toolkit alone",
            "; ".join(left),
            advice="nvidia-docker2 is retired: install the container toolkit, then remove it and its source. "
            "Do not purge it: /etc/docker/daemon.json is a conffile of its, and goes with it "
            "(NVIDIA/nvidia-docker issue 1575).",
            mendable=not whole.refused,
        )
    return passed("none") if packages.get(TOOLKIT) else skipped("the container toolkit is not installed")
