"""Controls of the NVLink fabric: its manager, and what each GPU says of its place in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..catalog.fabric import NONE, OUTSIDE, fabric_of
from ..facts.known import Absent, Unknown
from ..facts.versions import branch, driver_version, same_driver, upstream
from ..planners import fabric as planner
from . import compare
from .gpu import NO_GPU
from .model import (
    Disrupts,
    Judged,
    Severity,
    Verdict,
    control,
    failed,
    not_ours,
    passed,
    skipped,
    unknown,
    warned,
)
from .reading import called, gpus, is_vm, read, shared_kernel, table

if TYPE_CHECKING:
    from ..facts.packages import Package, Packages

ROLE = "fabric"
_COMPLETED, _SUCCESS = "completed", "success"


def _manager(packages: Packages) -> Package | None:
    """The package under any of its names; not its development files."""
    names = table("fabric")["packages"]
    found = [p for n, p in packages.installed.items() if n in names or n.startswith("nvidia-fabricmanager-")]
    return next((p for p in found if not p.name.endswith("-dev")), None)


def _driver(host: Judged) -> str | None:
    """The driver that the manager has to match: the loaded one, or what nvidia-smi names."""
    loaded, smi = host.facts.loaded_driver, host.facts.smi
    if not isinstance(loaded, Unknown | Absent):
        return loaded.version
    return (
        smi.driver_version if not isinstance(smi, Unknown) and isinstance(smi.driver_version, str) else None
    )


def _states_complete(host: Judged) -> bool:
    smi = host.facts.smi
    if isinstance(smi, Unknown) or not smi.gpus:
        return False
    return all(isinstance(g.fabric.state, str) and g.fabric.state.lower() == _COMPLETED for g in smi.gpus)


@control(
    "fabric.manager",
    "A host with NVSwitches runs the fabric manager of its driver, and others run none",
    severity=Severity.HIGH,
    role=ROLE,
    disrupts=Disrupts.SERVICE,
    needs=("driver.installed",),
)
def manager(host: Judged) -> Verdict:
    packages = host.facts.packages
    if isinstance(packages, Unknown):
        return unknown(packages)
    kind, found = fabric_of(host.facts), _manager(packages)
    if found is not None and (wrong := _other_version(host, found)) is not None:
        return not_ours(wrong) if kind == NONE else wrong
    if isinstance(kind, Unknown):
        return unknown(kind)
    if found is None and _machines(host) and (why := shared_kernel(host)) is not None:
        # The switches are the machine's, which manages them from outside; fabric.state tells how well.
        return why
    if kind == NONE:
        return not_ours(_not_needed(host, found))
    return _as_wanted(host, packages)


def _as_wanted(host: Judged, installed: Packages) -> Verdict:
    """The host against what the role would make of it."""
    whole = planner.wanted(host.facts, host.profile, host.stack)
    if whole.kind != OUTSIDE and _states_complete(host) and (whole.refused or _manager(installed) is None):
        return passed("the fabric is complete, and managed from elsewhere")
    expected = f"{', '.join(whole.packages) or 'a fabric manager of the driver'}; its service runs"
    if whole.refused:
        return failed(expected, whole.refused)
    units, held = compare.units(host, whole.units), compare.holds(host, installed, whole.holds)
    for told in (units, held):
        if isinstance(told, Verdict):
            return told
    wrong = [*compare.packages(installed, whole.packages), *compare.files(host, whole.files)]
    wrong += [text for told in (units, held) if isinstance(told, list) for text in told]
    if wrong:
        names = " ".join(f"-u {unit.name}" for unit in whole.units) or "-b"
        return failed(
            expected,
            "; ".join(wrong),
            advice=f"`journalctl {names}` says why it does not run; without it CUDA ends with error 802.",
            evidence=tuple(wrong),
        )
    return passed(", ".join(whole.packages), expected=expected)


def _machines(host: Judged) -> bool:
    """Whether the kernel's machine manages the switches: a container without a kernel of its own."""
    kernels = host.facts.kernels
    return isinstance(kernels, Unknown) or not any(kernel.image for kernel in kernels)


def _not_needed(host: Judged, found: Package | None) -> Verdict:
    gpus_on_bus = host.facts.nvidia_gpus_on_bus
    if found is None or is_vm(host):
        none = not isinstance(gpus_on_bus, Unknown) and not gpus_on_bus
        return skipped(NO_GPU if none else "this host has no NVSwitch to manage")
    return warned(
        "no fabric manager, as there is no NVSwitch",
        f"{found.name} {found.version} is installed",
        advice="It ends at once where there is nothing to manage; remove it.",
    )


def _other_version(host: Judged, found: Package) -> Verdict | None:
    """Up to R615 the manager must be the driver's very release; from R620 on it has releases of its own."""
    driver, version = _driver(host), driver_version(upstream(found.version))
    if driver is None or (branch(driver) or 0) >= int(table("fabric")["standalone_from"]):
        return None
    if version is not None and same_driver(driver, version):
        return None
    return failed(
        f"{found.name} {driver}",
        f"{found.version} is installed, and the driver is {driver}",
        advice="Install both at one release in one transaction; the fabric stays down until then.",
    )


@control(
    "fabric.state",
    "Every GPU has joined the NVLink fabric",
    severity=Severity.HIGH,
    disrupts=Disrupts.SERVICE,
    needs=("gpu.answers", "fabric.manager"),
)
def state(host: Judged) -> Verdict:
    given = gpus(host)
    if isinstance(given, Verdict):
        return given
    expected = "Completed, Success, healthy"
    states, statuses = read(given, lambda gpu: gpu.fabric.state), read(given, lambda gpu: gpu.fabric.status)
    bad = [f"{called(gpu)}: state {value}" for gpu, value in states.bad(lambda s: s.lower() != _COMPLETED)]
    bad += [f"{called(gpu)}: status {value}" for gpu, value in statuses.bad(lambda s: s.lower() != _SUCCESS)]
    bad += [f"{called(gpu)}: {text}" for gpu in given for text in _unhealthy(gpu.fabric.health)]
    if bad:
        return failed(
            expected,
            "; ".join(bad[:4]),
            advice="Jobs that use the fabric end with CUDA error 802 or hang. Look at the fabric manager's "
            "log, at NVLink errors, and on NVLink 5 at the subnet manager (nvlsm).",
            evidence=tuple(bad),
        )
    wanting = states.wanting or statuses.wanting
    return wanting or passed(f"Completed on {len(states.known)} GPUs", expected=expected)


def _unhealthy(health: object) -> list[str]:
    """What the driver reports of the fabric's health that is not the good value."""
    good = table("fabric")["healthy"]
    told = health if isinstance(health, dict) else {}
    return [
        f"{name} {value}" for name, value in told.items() if name in good and value.lower() not in good[name]
    ]
