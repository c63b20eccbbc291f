"""What keeps GPUs in containers: CDI specifications of the driver that is there, and links in /dev/char.

runc hands a container's devices to systemd by the names in /dev/char, where NVIDIA's nodes have none. After
`systemctl daemon-reload` the container then loses its GPUs (NVIDIA/nvidia-container-toolkit issue 48).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..facts.known import Absent, Unknown
from ..facts.versions import compare_debian, same_driver, upstream
from .docker_engine import names
from .wanted import File, Unit

if TYPE_CHECKING:
    from ..facts import Facts

CTK = "/usr/bin/nvidia-ctk"
SPEC = "/var/run/cdi/nvidia.yaml"
KIND = "nvidia.com/gpu"
THEIR_ENV = "/etc/nvidia-container-toolkit/nvidia-cdi-refresh.env"
THEIR_UNITS = ("nvidia-cdi-refresh.path", "nvidia-cdi-refresh.service")
OUR_UNITS = ("gpu-provision-cdi.path", "gpu-provision-cdi.service")
LINKS_UNIT = "gpu-provision-dev-char.service"
_FOLDER = "/etc/systemd/system/"
_HEAD = "# Written by gpu-provision (role container_toolkit).\n"
_PATH_TEXT = f"""{_HEAD}[Unit]
Description=Watch for changes of the NVIDIA driver, whose libraries the CDI specification names

[Path]
PathChanged=/lib/modules/%v/modules.dep
PathChanged=/usr/bin/nvidia-smi
PathChanged={CTK}

[Install]
WantedBy=multi-user.target
"""
_SERVICE_TEXT = f"""{_HEAD}[Unit]
Description=CDI specification of the NVIDIA GPUs
ConditionPathExists={CTK}
ConditionPathExists=/proc/driver/nvidia/version
Before=docker.service

[Service]
Type=oneshot
ExecStart={CTK} cdi generate --output={SPEC}

[Install]
WantedBy=multi-user.target
"""
_LINKS_TEXT = f"""{_HEAD}[Unit]
Description=Links in /dev/char for the device nodes of the NVIDIA GPUs
Documentation=https://github.com/NVIDIA/nvidia-container-toolkit/issues/48
ConditionPathExists={CTK}
After=nvidia-persistenced.service
Before=docker.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart={CTK} system create-dev-char-symlinks --create-all

[Install]
WantedBy=multi-user.target
"""


@dataclass(frozen=True)
class Devices:
    """`refresh` are CDI specifications to be written anew; `restart` units whose work is undone."""

    files: tuple[File, ...] = ()
    units: tuple[Unit, ...] = ()
    refresh: tuple[str, ...] = ()
    restart: tuple[str, ...] = ()


def devices(facts: Facts, version: str | None) -> Devices:
    """`version` is the toolkit's, as its packages have it; None where it is not known yet."""
    driver = driver_now(facts)
    files, units = _cdi_units(facts, version)
    links = _links_wanted(facts)
    bare = bare_nodes(facts)
    files.append(File(f"{_FOLDER}{LINKS_UNIT}", _LINKS_TEXT if links else None))
    if links:
        # Without the driver there is nothing to link yet; the unit does it at the next boot.
        units.append(Unit(LINKS_UNIT, enabled=True, active=True if driver else None))
    return Devices(
        tuple(files),
        tuple(units),
        stale(facts, driver) if driver else (),
        (LINKS_UNIT,) if links and bare else (),
    )


def _cdi_units(facts: Facts, version: str | None) -> tuple[list[File], list[Unit]]:
    """NVIDIA's own units where the packages have them. Those look for the module below /lib/modules of the
    running
    kernel, where a container that shares its machine's kernel has none."""
    virtualization = facts.virtualization
    shared = not isinstance(virtualization, Unknown) and virtualization.shares_kernel
    old = version is not None and compare_debian(upstream(version), names()["cdi_refresh_since"]) < 0
    texts = dict(zip(OUR_UNITS, (_PATH_TEXT, _SERVICE_TEXT), strict=True))
    own = shared or old
    files = [File(f"{_FOLDER}{name}", text if own else None) for name, text in texts.items()]
    path, service = OUR_UNITS if own else THEIR_UNITS
    return files, [Unit(path, enabled=True, active=True), Unit(service, enabled=True)]


def _links_wanted(facts: Facts) -> bool:
    """Whether docker leaves its control groups to systemd, as it does by itself where cgroup2 stands alone,
    and the
    runtime's hook brings the devices; those of mode cdi docker itself keeps."""
    docker = facts.docker
    if runtime_mode(facts) == "cdi":
        return False
    return isinstance(docker, Unknown | Absent) or docker.cgroup_driver != "cgroupfs"


def runtime_mode(facts: Facts) -> str:
    """The mode of the NVIDIA runtime: `cdi`, or `auto` where the settings name none."""
    text = facts.file("/etc/nvidia-container-runtime/config.toml")
    found = re.search(r"(?m)^\s*mode\s*=\s*[\"']?([\w-]+)", text) if isinstance(text, str) else None
    return found[1] if found else "auto"


def bare_nodes(facts: Facts) -> tuple[str, ...]:
    """Device nodes that have no link in /dev/char."""
    nodes = facts.gpu_device_nodes
    return () if isinstance(nodes, Unknown) else tuple(node.path for node in nodes if not node.char_link)


def driver_now(facts: Facts) -> str | None:
    """The version of the driver that containers get; None where none is loaded or it is not known."""
    loaded, smi = facts.loaded_driver, facts.smi
    if not isinstance(loaded, Unknown | Absent) and loaded.version is not None:
        return loaded.version
    if not isinstance(smi, Unknown) and isinstance(smi.driver_version, str):
        return smi.driver_version
    return None


def spec_path(facts: Facts) -> str:
    """Where the refreshing unit writes: an administrator may have moved that (nvidia-cdi-refresh.env)."""
    text = facts.file(THEIR_ENV)
    moved = re.search(r"(?m)^NVIDIA_CTK_CDI_OUTPUT_FILE_PATH=(\S+)$", text) if isinstance(text, str) else None
    return moved[1] if moved else SPEC


def stale(facts: Facts, driver: str) -> tuple[str, ...]:
    """Specifications of GPUs that name another driver's libraries; the one to make where there is none."""
    specs = facts.cdi
    if isinstance(specs, Unknown):
        return ()
    ours = [spec for spec in specs if spec.kind == KIND]
    if not ours:
        return (spec_path(facts),)
    return tuple(s.path for s in ours if not all(same_driver(named, driver) for named in s.versions))
