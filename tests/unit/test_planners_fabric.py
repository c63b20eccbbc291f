"""Role fabric: where there is a fabric to manage, with which packages, and what the control says of it."""

# ruff: noqa: E501

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from planner_host import (
    CONVERGED,
    DAEMON,
    MISSING,
    NO_CLOCKS,
    NOT_TOLD,
    dpkg,
    facts,
    gpu,
    port,
    profile,
    said,
    stack,
    text,
    unit,
    with_gpus,
)

from provision.catalog.fabric import fabric_of
from provision.catalog.stack import Part, Stack
from provision.controls import all_controls
from provision.controls.model import Finding, Judged, Status
from provision.facts.known import Unknown
from provision.facts.smi_model import Fabric
from provision.planners import fabric

if TYPE_CHECKING:
    from provision.facts import Facts

RELEASE = "580.95.05"
H100, B200, GB200 = "0x2330", "0x2901", "0x2941"
MANAGER = Part(RELEASE, ("nvidia-fabricmanager",), (f"nvidia-fabricmanager={RELEASE}-1",), "nvidia")
FIFTH = Part(RELEASE, (*MANAGER.packages, "nvlsm", "infiniband-diags"), MANAGER.pin, "nvidia")
IMEX = Part(RELEASE, ("nvidia-imex",), (f"nvidia-imex={RELEASE}-1",), "nvidia")
RUNS = unit(fabric.UNIT, "active", "enabled")
STOPPED = unit(fabric.UNIT, "failed", "disabled")
LOADED = {
    "file:/proc/driver/nvidia/version": text(
        f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {RELEASE}  Thu\n"
    ),
    "file:/sys/module/nvidia/version": text(f"{RELEASE}\n"),
}


def bus(device: str, count: int = 8, switches: int = 0) -> dict[str, Any]:
    cards = [
        {"address": f"0000:{6 + i:02x}:00.0", "vendor": "0x10de", "device": device, "class": "0x030200",
         "driver": "nvidia", "numa_node": 0}
        for i in range(count)
    ]  # fmt: skip
    bridges = [
        {"address": f"0000:{64 + i:02x}:00.0", "vendor": "0x10de", "device": "0x22a3", "class": "0x068000",
         "driver": "nvidia-nvswitch", "numa_node": 0}
        for i in range(switches)
    ]  # fmt: skip
    return said([*cards, *bridges])


def host(device: str = H100, switches: int = 4, units: str = RUNS, **more: Any) -> Facts:
    packages = more.pop("packages", {**CONVERGED, "nvidia-fabricmanager": f"{RELEASE}-1"})
    items = {
        "pci": bus(device, more.pop("count", 8), switches),
        "units": said(f"{DAEMON}\n\n{NO_CLOCKS}\n\n{units}\n"),
        "dpkg.list": dpkg(packages),
        "apt.holds": said("".join(f"{name}\n" for name in packages)),
        f"file:{fabric.MODULES}": MISSING,
        f"file:{fabric.NODES}": MISSING,
        **LOADED,
        **more,
    }
    return facts(items=items)


def chosen(part: Part | None, **driver: Any) -> Stack:
    given = {"branch": 580, "version": RELEASE, "source": "nvidia", **driver}
    return Stack(satisfiable=True, driver=stack(**given).driver, fabric_manager=part)


def plan(on: Facts, part: Part | None = MANAGER, **variables: Any) -> fabric.FabricWanted:
    return fabric.wanted(on, profile(**variables), chosen(part))


def finding(on: Facts, part: Part | None = MANAGER, **variables: Any) -> Finding:
    return all_controls()["fabric.manager"].find(Judged(on, profile(**variables), chosen(part)))


@pytest.mark.parametrize(
    ("on", "kind"),
    [
        (host(), "bridges"),
        (host(switches=0), "none"),
        (host(B200, 0), "ports"),
        (host(B200, 0, count=1), "none"),
        (host(B200, 0, virtualization=said("kvm\n")), "none"),
        (host(B200, 0, virtualization=said("kvm\n"), rdma=said([port("mlx5_0", vpd="SW_MNG")])), "ports"),
        (host(GB200, 0, count=4), "outside"),
        (facts(), "none"),
    ],
)
def test_a_fabric_is_told_by_the_boards(on: Facts, kind: str) -> None:
    assert fabric_of(on) == kind


def test_what_the_bus_holds_is_not_guessed() -> None:
    silent = facts(items={"pci": {"timed_out": True}, "lspci": {"timed_out": True}})
    assert isinstance(fabric_of(silent), Unknown)
    assert "is not known" in str(plan(silent).refused)


def test_without_switches_there_is_nothing_to_do() -> None:
    planned = plan(facts())
    assert planned.refused is None
    assert planned.packages == planned.units == planned.files == ()


def test_the_drivers_transaction_is_given_exact_names() -> None:
    assert fabric.packages(chosen(MANAGER)) == (f"nvidia-fabricmanager={RELEASE}-1",)
    assert fabric.packages(chosen(FIFTH)) == (
        f"nvidia-fabricmanager={RELEASE}-1",
        "nvlsm",
        "infiniband-diags",
    )
    inexact = Part(RELEASE, MANAGER.packages, (f"nvidia-fabricmanager={RELEASE}-*",), "nvidia")
    assert fabric.packages(chosen(inexact)) == ("nvidia-fabricmanager",)
    assert fabric.packages(chosen(None)) == fabric.packages(Unknown("no card")) == ()


def test_bridges_need_the_service_alone_and_ports_a_module_too() -> None:
    planned = plan(host())
    assert [(u.name, u.enabled, u.active) for u in planned.units] == [(fabric.UNIT, True, True)]
    assert [(f.path, f.text) for f in planned.files] == [(fabric.MODULES, None)]
    fifth = plan(host(B200, 0), FIFTH)
    assert "\nib_umad\n" in str(fifth.files[0].text)
    assert fifth.modules == ("ib_umad",)
    assert plan(host(B200, 0, virtualization=said("systemd-nspawn\n")), FIFTH).modules == ()


def test_a_service_waits_for_the_boot_that_loads_its_driver() -> None:
    other = {path: text(answer["text"].replace(RELEASE, "570.26")) for path, answer in LOADED.items()}
    planned = plan(host(**other))
    assert [(u.enabled, u.active) for u in planned.units] == [(True, None)]
    assert not planned.joins


def test_a_service_that_runs_while_gpus_have_not_joined_is_started_again() -> None:
    waiting = gpu(fabric=Fabric("In Progress", NOT_TOLD, NOT_TOLD, NOT_TOLD, {}))
    joined = gpu(fabric=Fabric("Completed", "Success", NOT_TOLD, NOT_TOLD, {}))
    assert plan(with_gpus(host(), waiting)).restart == (fabric.UNIT,)
    assert plan(with_gpus(host(), joined)).restart == ()
    assert plan(with_gpus(host(units=STOPPED), waiting)).restart == ()


def test_trays_get_imex_once_its_nodes_are_named() -> None:
    alone = plan(host(GB200, 0, count=4), IMEX)
    assert alone.packages == (f"nvidia-imex={RELEASE}-1",)
    assert not alone.units
    named = plan(host(GB200, 0, count=4), IMEX, fabric_imex_nodes=["10.0.0.1", "10.0.0.2"])
    assert named.units[0].name == fabric.IMEX_UNIT
    assert {f.path: f.text for f in named.files}[fabric.NODES] == "10.0.0.1\n10.0.0.2\n"
    assert not named.joins


def test_another_source_and_another_release_are_refused_with_the_way_out() -> None:
    assert "nvidia_driver_source: nvidia" in str(plan(host(), None).refused)
    pattern = Part(RELEASE, MANAGER.packages, (f"nvidia-fabricmanager={RELEASE}-*",), "nvidia")
    offered = said(
        "nvidia-fabricmanager:\n  Installed: (none)\n  Candidate: 580.105.08-1\n  Version table:\n"
        "     580.105.08-1 500\n        500 http://archive.example x Packages\n"
    )
    refused = plan(host(packages=CONVERGED, **{"apt.policy": offered}), pattern).refused
    assert f"no nvidia-fabricmanager of driver {RELEASE}; they have 580.105.08-1" in str(refused)


@pytest.mark.parametrize(
    ("on", "status", "says", "role"),
    [
        (host(), Status.PASS, "nvidia-fabricmanager", "fabric"),
        (host(units=STOPPED), Status.FAIL, "nvidia-fabricmanager.service is failed", "fabric"),
        (host(packages=CONVERGED), Status.FAIL, "not installed", "fabric"),
        (host(packages={**CONVERGED, "nvidia-fabricmanager": "580.82.07-1"}), Status.FAIL, "the driver is 580.95.05", "fabric"),
        (host(switches=0), Status.WARN, "is installed", None),
        (facts(), Status.SKIP, "no NVSwitch to manage", "fabric"),
        (host(packages=CONVERGED, virtualization=said("docker\n"), kernels=said([])), Status.SKIP, "docker", "fabric"),
        (host(packages=CONVERGED, virtualization=said("systemd-nspawn\n")), Status.FAIL, "not installed", "fabric"),
    ],
)  # fmt: skip
def test_the_control_compares_with_what_the_role_would_make(
    on: Facts, status: Status, says: str, role: str | None
) -> None:
    found = finding(on)
    assert (found.status, found.role) == (status, role), found
    assert says in found.actual


def test_named_nodes_put_the_role_into_the_plan() -> None:
    there = {**CONVERGED, "nvidia-imex": f"{RELEASE}-1"}
    units = unit(fabric.IMEX_UNIT, "active", "enabled")
    nodes = {f"file:{fabric.NODES}": text("10.0.0.1\n")}
    tray = host(GB200, 0, units, count=4, packages=there, **nodes)
    assert finding(tray, IMEX).status is Status.PASS
    assert finding(tray, IMEX, fabric_imex_nodes=["10.0.0.1"]).status is Status.PASS
    changed = finding(tray, IMEX, fabric_imex_nodes=["10.0.0.1", "10.0.0.2"])
    assert (changed.status, changed.role) == (Status.FAIL, "fabric")
