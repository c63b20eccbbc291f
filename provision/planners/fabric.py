"""Role fabric: the services of the NVLink fabric, where the host has NVSwitches to manage.

The fabric manager is of the driver's very release, so its packages go in with the driver: the role
nvidia_driver asks `packages` for them. What is left to this role is a host that got its driver without them,
the service, and what it needs to start. A rack whose switches are managed outside has IMEX instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..catalog.fabric import NONE, OUTSIDE, PORTS, fabric_of
from ..catalog.tables import catalog
from ..facts.kernels import LoadedDriver
from ..facts.known import Absent, Unknown
from ..facts.versions import same_driver
from .driver_place import names
from .wanted import File, Unit, Wanted, Why

if TYPE_CHECKING:
    from ..catalog.stack import Part, Stack
    from ..facts import Facts
    from ..profile.model import Profile

UNIT = "nvidia-fabricmanager.service"
IMEX_UNIT = "nvidia-imex.service"
MODULES = "/etc/modules-load.d/gpu-provision-fabric.conf"
NODES = "/etc/nvidia-imex/nodes_config.cfg"
_COMPLETED = "completed"


@dataclass(frozen=True)
class FabricWanted(Wanted):
    """`kind` is how the switches are managed (catalog.fabric). `restart`: units that run with nothing done.

    `modules` are to be loaded now. `joins` is True where the GPUs will join once the service runs.
    """

    kind: str = NONE
    branch: int | None = None
    independent: tuple[str, ...] = ()
    restart: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    joins: bool = False


def packages(stack: Stack | Unknown) -> tuple[str, ...]:
    """What belongs into the driver's transaction, as NAME=VERSION where the archive's offer is known.

    Empty where the host has no NVSwitch, or its driver's source no fabric manager.
    """
    part = None if isinstance(stack, Unknown) else stack.fabric_manager
    if part is None:
        return ()
    exact = {pin.partition("=")[0]: pin for pin in part.pin if "*" not in pin}
    return tuple(exact.get(name, name) for name in part.packages)


def wanted(facts: Facts, profile: Profile, stack: Stack | Unknown) -> FabricWanted:
    """Packages, units and modules, or why there can be none. Nothing at all without NVSwitches."""
    kind = fabric_of(facts)
    if isinstance(kind, Unknown):
        return FabricWanted(refused=f"whether there are NVSwitches is not known: {kind.reason}")
    if kind == NONE:
        return FabricWanted(why=(Why("fabric", "there is no NVSwitch for this host to manage"),))
    if isinstance(stack, Unknown):
        return FabricWanted(kind=kind, refused=f"no matching set could be chosen: {stack.reason}")
    if not stack.satisfiable or stack.driver is None:
        said = "; ".join(conflict.says for conflict in stack.conflicts)
        return FabricWanted(kind=kind, refused=f"no driver satisfies this host and profile: {said}")
    part = stack.fabric_manager
    if part is None:
        return FabricWanted(kind=kind, refused=_other_source(stack.driver.source))
    refused = _not_offered(facts, part, stack.driver.version)
    if refused:
        return FabricWanted(kind=kind, refused=refused)
    nodes = tuple(profile["fabric_imex_nodes"] or ()) if kind == OUTSIDE else ()
    unit = IMEX_UNIT if kind == OUTSIDE else UNIT
    # IMEX without the other trays' addresses would wait for nobody: it is left as it is.
    runs = kind != OUTSIDE or bool(nodes)
    able = _driver_loaded(facts, stack.driver.version)
    fifth = kind == PORTS
    return FabricWanted(
        files=_files(fifth, nodes),
        units=(Unit(unit, enabled=True, active=True if able else None),) if runs else (),
        packages=packages(stack),
        holds=part.packages,
        why=_why(stack, part),
        kind=kind,
        branch=stack.driver.branch,
        independent=(*names("independent"), *beside()),
        restart=(unit,) if runs and able and _undone(facts, unit) else (),
        modules=_to_load(facts) if fifth else (),
        joins=kind != OUTSIDE and able,
    )


def _other_source(source: str) -> str:
    return (
        f"the driver comes from {source!r}, which has no fabric manager, and without one CUDA does not start "
        "on NVSwitches (error 802): take the driver from NVIDIA's repository (nvidia_driver_source: nvidia)"
    )


def beside() -> tuple[str, ...]:
    """Packages of the fabric with releases of their own."""
    return tuple(catalog().raw["packages"]["nvlink5"]["packages"])


def _files(fifth: bool, nodes: tuple[str, ...]) -> tuple[File, ...]:
    module = catalog().raw["packages"]["nvlink5"]["module"]
    text = f"# Written by gpu-provision (role fabric): the way to the switches.\n{module}\n"
    files = [File(MODULES, text if fifth else None)]
    if nodes:
        files.append(File(NODES, "".join(f"{node}\n" for node in nodes)))
    return tuple(files)


def _to_load(facts: Facts) -> tuple[str, ...]:
    """A container cannot load modules into the kernel that it shares."""
    loaded, virtualization = facts.modules_loaded, facts.virtualization
    module = str(catalog().raw["packages"]["nvlink5"]["module"])
    shares = not isinstance(virtualization, Unknown) and virtualization.shares_kernel
    return () if shares or isinstance(loaded, Unknown) or module in loaded else (module,)


def _driver_loaded(facts: Facts, version: str | None) -> bool:
    """Whether the service can start: the loaded module is the driver's that it belongs to."""
    loaded = facts.loaded_driver
    return isinstance(loaded, LoadedDriver) and (version is None or same_driver(loaded.version, version))


def _undone(facts: Facts, unit: str) -> bool:
    """The service runs, and a GPU has not joined: it was started before its driver, or with another one."""
    units, smi = facts.units, facts.smi
    if isinstance(units, Unknown | Absent) or isinstance(smi, Unknown) or unit != UNIT:
        return False
    state = units.get(unit)
    known = [gpu.fabric.state for gpu in smi.gpus if isinstance(gpu.fabric.state, str)]
    return state is not None and state.runs and any(value.lower() != _COMPLETED for value in known)


def _not_offered(facts: Facts, part: Part, version: str | None) -> str | None:
    """Why the packages cannot be had at the driver's release; None where they can, or it is not known."""
    policy, installed = facts.policy, facts.packages
    if isinstance(policy, Unknown) or version is None:
        return None
    for pin in part.pin:
        name, _, wanted_version = pin.partition("=")
        offer = policy.get(name)
        there = None if isinstance(installed, Unknown) else installed.get(name)
        if "*" not in wanted_version or offer is None or not offer.versions or there is not None:
            continue
        return f"the archives have no {name} of driver {version}; they have {', '.join(offer.versions[:4])}"
    return None


def _why(stack: Stack, part: Part) -> tuple[Why, ...]:
    said = f"{', '.join(part.packages)} at the driver's release"
    found = tuple(Why(r.about, r.says, r.source) for r in stack.reasons if r.about.startswith("fabric"))
    return found or (
        Why("fabric", said, "https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/"),
    )
