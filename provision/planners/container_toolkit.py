"""Role container_toolkit: docker with NVIDIA's container toolkit, its settings, and GPUs that stay in
containers.

docker is adopted where it is there. The toolkit's four packages come at one version and are held as a set.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..facts.known import Absent, Unknown
from ..facts.versions import debian_key, upstream
from . import docker_engine, docker_settings
from .container_devices import Devices, devices
from .container_sources import Sources, sources
from .docker_engine import SOCKET, UNIT, names
from .wanted import File, Unit, Wanted, Why

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..catalog.stack import Stack
    from ..facts import Facts
    from ..facts.packages import Packages
    from ..profile.model import Profile


@dataclass(frozen=True)
class ToolkitWanted(Wanted):
    """`version` is that of the four packages, None as long as no archive is known that has them; `exact` is
    True where it is known. `absent` are packages that the toolkit replaced.

    `settings` are to be in daemon.json, and `remove` paths of keys no longer wanted there. `interrupt` says
    that docker may be restarted although containers run. `refresh` are CDI specifications to be written anew,
    `restart` units whose work is undone.
    """

    version: str | None = None
    exact: bool = False
    absent: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    remove: tuple[tuple[str, ...], ...] = ()
    interrupt: bool = False
    refresh: tuple[str, ...] = ()
    restart: tuple[str, ...] = ()


def wanted(facts: Facts, profile: Profile, stack: Stack | Unknown) -> ToolkitWanted:
    """Packages, sources, settings and units, or why there can be none."""
    packages = facts.packages
    if trouble := _no_card(facts) or docker_engine.trouble(facts):
        return ToolkitWanted(refused=trouble)
    if isinstance(packages, Unknown):
        return ToolkitWanted(refused=f"the installed packages are not known: {packages.reason}")
    engine = docker_engine.engine(facts, profile)
    version = toolkit_version(facts, packages, profile)
    there = _at_one(packages)
    source = archive(facts, packages, profile)
    settings = docker_settings.settings(facts, profile)
    if said := engine.refused or source.refused or settings.refused:
        return ToolkitWanted(refused=said)
    pending = _pending(facts, settings, there != version)
    if pending and (why_not := _running(facts, profile)) is not None:
        return ToolkitWanted(refused=f"{pending}, and {why_not}")
    absent = tuple(name for name in names()["legacy_packages"] if packages.get(name) is not None)
    kept = devices(facts, version)
    toolkit = tuple(f"{name}={version}" if version else name for name in names()["toolkit"])
    return ToolkitWanted(
        files=(*source.files, *kept.files, File(docker_settings.OURS, settings.ours)),
        keys=source.keys,
        units=(_docker_unit(facts), *kept.units),
        packages=(*engine.packages, *toolkit),
        holds=tuple(names()["toolkit"]),
        steps=_steps(absent, settings, kept, pending),
        why=(*settings.why, *_why(stack)),
        version=version,
        exact=version is not None,
        absent=absent,
        settings=settings.values,
        remove=settings.remove,
        interrupt=bool(profile["container_toolkit_interrupt_containers"]),
        refresh=kept.refresh,
        restart=kept.restart,
    )


def asked(profile: Profile) -> bool:
    """Whether the profile says anything about containers. A host that others set up is not found wanting for
    what only this role would do (a hold, a limit, a unit) where nobody asked for it."""
    return any(name.startswith("container_toolkit_") or name == "limits_memlock" for name in profile.chosen)


def archive(facts: Facts, packages: Packages, profile: Profile) -> Sources:
    """Where the packages come from; none is added where they are all there."""
    version = toolkit_version(facts, packages, profile)
    return sources(facts, profile, needed=version is None or _at_one(packages) != version)


def _no_card(facts: Facts) -> str | None:
    gpus = facts.nvidia_gpus_on_bus
    if isinstance(gpus, Unknown):
        return f"the devices on the bus are not known: {gpus.reason}"
    return None if gpus else "there is no NVIDIA GPU on this host's bus"


def _at_one(packages: Packages) -> str | None:
    """The version that all four packages are installed at; None where they are not, or not all at one."""
    found = {None if (p := packages.get(name)) is None else p.version for name in names()["toolkit"]}
    return found.pop() if len(found) == 1 else None


def toolkit_version(facts: Facts, packages: Packages, profile: Profile) -> str | None:
    """What is installed, where that is one set and the one asked for; else the newest that an archive has
    of all four.
    """
    asked = profile["container_toolkit_version"]
    there = _at_one(packages)
    if there is not None and _is(there, asked):
        return there
    if isinstance(facts.policy, Unknown):
        return None
    common: set[str] | None = None
    for name in names()["toolkit"]:
        offer = facts.policy.get(name)
        archived = {v for v in offer.versions if offer.archives(v)} if offer else set()
        common = archived if common is None else common & archived
    fitting = [v for v in common or () if _is(v, asked) and "~rc" not in v]
    return max(fitting, key=debian_key, default=None)


def _is(version: str, asked: object) -> bool:
    """Whether a package's version is of the release or series asked for."""
    return not asked or f"{upstream(version)}.".startswith(f"{asked}.")


def _pending(facts: Facts, settings: docker_settings.Settings, installs: bool) -> str | None:
    """Why docker has to be restarted; None where it need not."""
    if isinstance(facts.docker, Unknown | Absent):
        return None
    if settings.steps:
        return f"docker's settings change ({settings.steps[0]}), for which it has to be restarted"
    if isinstance(facts.file(docker_settings.UNAPPLIED), str):
        return "docker was not restarted since its settings changed"
    started = facts.docker_started
    if installs or (not isinstance(started, Unknown) and started.before_the_hook):
        return "docker looks for the toolkit only when it starts, so it has to be restarted"
    return None


def _running(facts: Facts, profile: Profile) -> str | None:
    """Why docker must not be restarted now."""
    docker = facts.docker
    assert not isinstance(docker, Unknown | Absent)
    if docker.live_restore is True or profile["container_toolkit_interrupt_containers"]:
        return None
    count = docker.containers_running
    if count == 0:
        return None
    told = (
        "it is not known whether containers run" if isinstance(count, Unknown) else f"{count} containers run"
    )
    return (
        f"{told}, which that would end. Stop them, or allow it with "
        f"container_toolkit_interrupt_containers: true "
        "(live-restore in daemon.json would let them run on)"
    )


def _docker_unit(facts: Facts) -> Unit:
    """Where only the socket starts docker, that stays so."""
    units = facts.units
    assert not isinstance(units, Unknown | Absent)
    socket, service = units.get(SOCKET), units.get(UNIT)
    by_socket = (
        socket is not None and socket.starts_at_boot and service is not None and not service.starts_at_boot
    )
    return Unit(UNIT, enabled=None if by_socket else True, active=True)


def _steps(
    absent: tuple[str, ...], settings: docker_settings.Settings, kept: Devices, pending: str | None
) -> tuple[str, ...]:
    return (
        *(f"remove {name}, keeping its configuration" for name in absent),
        *settings.steps,
        *(["restart docker"] if pending else []),
        *(f"write {path} for the driver that is loaded" for path in kept.refresh),
        *(f"start {name} again" for name in kept.restart),
    )


def _why(stack: Stack | Unknown) -> tuple[Why, ...]:
    reasons = () if isinstance(stack, Unknown) else stack.reasons
    return tuple(Why(r.about, r.says, r.source) for r in reasons if r.about.startswith("container_toolkit"))
