"""Controls of GPUs, driver, host and NCCL over the plain host: each fault changes its own finding, unknown is never a pass."""

# ruff: noqa: E501

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from planner_host import (
    BASE,
    BESIDE,
    CONVERGED,
    DAEMON,
    DRIVER,
    KERNEL,
    MISSING,
    NO_CLOCKS,
    NOT_TOLD,
    PLAIN,
    RELEASE,
    dpkg,
    facts,
    gpu,
    kernel,
    pci,
    port,
    profile,
    said,
    stack,
    text,
    unit,
    with_gpus,
)

import provision.controls.driver
import provision.controls.driver_place
import provision.controls.gpu
import provision.controls.host
import provision.controls.nccl
import provision.controls.nccl_names
from provision.catalog.stack import Conflict, Stack, Warning_
from provision.controls.model import CONTROLS, Finding, Judged, Status
from provision.facts.known import Unknown
from provision.planners import gpu_settings, nccl, nvidia_driver, rival_modules

if TYPE_CHECKING:
    from provision.facts import Facts
    from provision.facts.smi_model import Gpu

OURS = [
    name
    for name, known in CONTROLS.items()
    if known.judge.__module__.rpartition(".")[2] in ("gpu", "driver", "driver_place", "host", "nccl")
]


def converged(*cards: Gpu, items: dict[str, Any] | None = None, **variables: Any) -> tuple[Facts, Any]:
    """The plain host with everything as the profile wants it, and then some items changed."""
    cards = cards or (gpu(0), gpu(1))
    wanted = profile(**variables)
    first = with_gpus(facts(), *cards)
    files = {f"file:{rival_modules.MODPROBE}": text(rival_modules.MODPROBE_TEXT)}
    units = [DAEMON, NO_CLOCKS]
    for planned in (gpu_settings.wanted(first, wanted, stack()), nccl.wanted(first, wanted, stack())):
        files |= {f"file:{f.path}": MISSING if f.text is None else text(f.text) for f in planned.files}
    if f"file:{gpu_settings.SCRIPT}" in files and files[f"file:{gpu_settings.SCRIPT}"] is not MISSING:
        units = [DAEMON, unit(gpu_settings.CLOCKS_UNIT, "active", "enabled", f"{gpu_settings.SCRIPT} set")]
    if not wanted["gpu_settings_persistence"]:
        units[0] = unit(gpu_settings.DAEMON, "inactive", "disabled", "/usr/bin/nvidia-persistenced")
    items = {"units": said("\n\n".join(units) + "\n"), **files, **(items or {})}
    return with_gpus(facts(items=items), *cards), wanted


def find(
    name: str, *cards: Gpu, chosen: Any = None, items: dict[str, Any] | None = None, **variables: Any
) -> Finding:
    host, wanted = converged(*cards, items=items, **variables)
    return CONTROLS[name].find(Judged(host, wanted, stack() if chosen is None else chosen))


@pytest.mark.parametrize("name", OURS)
@pytest.mark.parametrize(
    "variables", [{}, {"gpu_settings_clocks": "max"}, {"nccl_variables": {"NCCL_DEBUG": "WARN"}}]
)
def test_a_converged_host_passes(name: str, variables: dict[str, Any]) -> None:
    found = find(name, **variables)
    assert found.status is Status.PASS, found


@pytest.mark.parametrize("name", OURS)
def test_a_recording_without_answers_is_never_a_pass(name: str) -> None:
    empty = facts(items={item: {"not_asked": "nothing was"} for item in BASE})
    found = CONTROLS[name].find(Judged(empty, profile(), Unknown("no facts to choose by")))
    assert found.status is Status.UNKNOWN, found


@pytest.mark.parametrize("name", [n for n in OURS if n.partition(".")[0] in ("gpu", "driver")])
def test_a_host_without_gpus_is_skipped(name: str) -> None:
    assert find(name, items={"pci": pci()}).status is Status.SKIP


NOT_LOADED = {"file:/proc/driver/nvidia/version": MISSING, "file:/sys/module/nvidia/version": MISSING,
              "lsmod": said("Module                  Size  Used by\n")}  # fmt: skip
LOADED_OTHER = {"file:/proc/driver/nvidia/version": text("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.216.01  Thu\n"),
                "file:/sys/module/nvidia/version": text("535.216.01\n")}  # fmt: skip
CONF = "file:/etc/nccl.conf"
MODPROBE = f"file:{rival_modules.MODPROBE}"
CASES: list[tuple[str, dict[str, Any], Status, str]] = [
    ("driver.installed", {"dpkg.list": dpkg(PLAIN), "kernels": said([kernel(module=None)])}, Status.FAIL, "not installed"),
    ("driver.installed", {"dpkg.list": dpkg({**CONVERGED, "libcuda1": "535.216.01-1"})}, Status.FAIL, "libcuda1"),
    ("driver.installed", {"dpkg.list": dpkg({**CONVERGED, "cuda-drivers": "580.65.06-1"})}, Status.FAIL, "would be older"),
    ("driver.installed", {"dpkg.list": dpkg({**CONVERGED, "nvidia-open-kernel-dkms": f"{RELEASE}-1"})}, Status.FAIL, "in the way"),
    ("driver.installed", {"kernels": said([kernel(), kernel("6.1.0-58-amd64", None, headers=False)])}, Status.FAIL, "linux-headers-6.1.0-58"),
    ("driver.loaded-matches-installed", NOT_LOADED, Status.FAIL, "no NVIDIA module"),
    ("driver.loaded-matches-installed", LOADED_OTHER, Status.FAIL, "535.216.01 loaded"),
    ("driver.loaded-matches-installed", {"virtualization": said("lxc\n")}, Status.SKIP, "another machine's"),
    ("driver.loaded-matches-installed", {"dpkg.list": dpkg(PLAIN)}, Status.UNKNOWN, "no driver is installed"),
    ("driver.next-boot", {"kernels": said([kernel(), kernel("6.1.0-58-amd64", None, headers=False)])}, Status.FAIL, "no headers to build"),
    ("driver.next-boot", {"kernels": said([kernel(module="535.216.01")])}, Status.FAIL, "has module 535.216.01"),
    ("driver.next-boot", {"kernels": said([kernel(), kernel("6.1.0-1-amd64", None, image=False)])}, Status.PASS, ""),
    ("driver.next-boot", {"kernels": said([kernel(headers=False)])}, Status.FAIL, "has no headers"),
    ("driver.next-boot", {"virtualization": said("lxc\n"), "kernels": said([kernel(module=None)])}, Status.FAIL, "no module"),
    ("driver.modules-flavour", {"kernels": said([{**kernel(), "nvidia_license": "Dual MIT/GPL"}])}, Status.FAIL, "open modules"),
    # The module on disk does not tell which one is loaded: the version of both flavours is the same.
    ("driver.modules-flavour", {"file:/proc/driver/nvidia/version": {**text("NVRM version: NVIDIA"), "cut": True}}, Status.UNKNOWN, "cut at the collector's limit"),
    ("driver.modules-flavour", {"file:/proc/driver/nvidia/version": {"denied": True}}, Status.UNKNOWN, "no right to read it"),
    ("driver.modules-flavour", {"file:/proc/driver/nvidia/version": {"not_asked": "no time was left"}}, Status.UNKNOWN, "no time was left"),
    ("driver.single-origin", {"dpkg.list": dpkg({**CONVERGED, "nvidia-utils-580-server": "580.1-1"})}, Status.FAIL, "nvidia-utils-580"),
    ("driver.pinned", {"apt.holds": said("\n".join([*DRIVER, "nvidia-modprobe"]) + "\n")}, Status.FAIL, "1 of 9"),
    ("driver.pinned", {"apt.holds": said("E: broken\n", 100)}, Status.UNKNOWN, "ended with status 100"),
    ("driver.rival-module", {MODPROBE: MISSING}, Status.FAIL, "does not keep them out"),
    ("driver.rival-module", {MODPROBE: text("blacklist nouveau\n")}, Status.FAIL, "does not keep them out"),
    ("driver.rival-module", {"pci": pci("nouveau", "nvidia")}, Status.FAIL, "bound to nouveau"),
    ("driver.secure-boot", {"secure-boot": MISSING}, Status.UNKNOWN, "not found"),
    ("driver.secure-boot", {"virtualization": said("docker\n"), "secure-boot": MISSING}, Status.SKIP, ""),
    ("driver.secure-boot", {**NOT_LOADED, "secure-boot": said("SecureBoot enabled\n")}, Status.FAIL, "mokutil --import"),
    ("driver.runfile-leftovers", {"nvidia.files": said([{"path": "/usr/bin/nvidia-uninstall", "kind": "file", "package": None}])},
     Status.FAIL, "nvidia-uninstall"),
    ("driver.runfile-leftovers", {"nvidia.files": said([{"path": "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.550.54.14", "kind": "file", "package": None}])},
     Status.FAIL, "load it in place"),
    ("driver.runfile-leftovers", {"nvidia.files": said([{"path": "/usr/lib/x86_64-linux-gnu/libcuda.so.1", "target": "/etc/alternatives/libcuda", "kind": "file", "package": None}])},
     Status.PASS, ""),
    ("host.apt-sources", {"file:/etc/apt/sources.list": text("deb http://deb.example/debian bookworm main\n")}, Status.FAIL, "gpu-provision.sources is not there"),
    ("host.packages-state", {"dpkg.list": said("ii \tbash\t5\tamd64\niF \tnvidia-kernel-dkms\t535\tamd64\n")}, Status.FAIL, "half-configured"),
    ("host.reboot-required", {"file:/run/reboot-required": text("*** System restart required ***\n")}, Status.WARN, "asks for a reboot"),
    ("host.reboot-required", {"virtualization": said("lxc\n")}, Status.SKIP, ""),
    ("nccl.interface", {CONF: MISSING}, Status.FAIL, "names no interface"),
    ("nccl.interface", {CONF: text("NCCL_SOCKET_IFNAME=eth0\n")}, Status.FAIL, "no such interface"),
    ("nccl.variables", {CONF: MISSING}, Status.FAIL, "not set"),
    ("nccl.variables", {CONF: {"denied": True}}, Status.UNKNOWN, "no right"),
    ("nccl.ib", {"rdma": said([port("mlx5_0")])}, Status.FAIL, "NCCL_IB_HCA is not set"),
    ("nccl.ib", {"rdma": said([port("mlx5_0", "DOWN")])}, Status.WARN, "none of 1 ports"),
    ("nccl.ib", {"rdma": {"timed_out": True}}, Status.UNKNOWN, "did not answer"),
    ("gpu.clocks", {"file:/etc/systemd/system/gpu-provision-clocks.service": text("x")}, Status.FAIL, "is there and not wanted"),
    ("gpu.persistence", {"units": said(f"{unit('nvidia-persistenced.service', 'active', 'disabled', '/usr/bin/nvidia-persistenced')}\n")},
     Status.FAIL, "disabled at boot"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "items", "status", "says"), CASES, ids=[f"{c[0]}-{i}" for i, c in enumerate(CASES)]
)
def test_a_fault_is_found(name: str, items: dict[str, Any], status: Status, says: str) -> None:
    found = find(name, items=items)
    assert found.status is status, found
    assert says in " ".join((found.actual, found.expected, *found.evidence))


def test_a_card_that_the_driver_does_not_serve_is_named() -> None:
    found = find("gpu.count", gpu(0))
    assert found.status is Status.FAIL
    assert "0000:07:00.0" in found.evidence[0]


def test_a_silent_driver_is_a_fail_with_its_reason_and_its_settings_are_unknown() -> None:
    host, wanted = converged()
    del host.__dict__["smi"]
    host.recording.items["nvidia-smi.query"] = {  # type: ignore[index]
        "rc": 9, "stdout": "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n", "stderr": "",
    }  # fmt: skip
    judged = Judged(host, wanted, stack())
    answers = CONTROLS["gpu.answers"].find(judged)
    assert answers.status is Status.FAIL
    assert "not-loaded" in answers.actual
    for name in ("gpu.count", "gpu.persistence", "gpu.clocks"):
        found = CONTROLS[name].find(judged)
        assert found.status is Status.UNKNOWN
        assert "gpu.answers" in found.needs


def test_persistence_on_now_and_not_after_a_reboot_are_two_things() -> None:
    assert "Disabled" in find("gpu.persistence", gpu(0), gpu(1, persistence=False)).actual
    off = find("gpu.persistence", gpu(0, persistence=False), gpu_settings_persistence=False)
    assert off.status is Status.PASS
    assert find("gpu.persistence", gpu(0, persistence=NOT_TOLD)).status is Status.UNKNOWN


def test_clocks_say_that_a_lock_cannot_be_read_back() -> None:
    found = find("gpu.clocks", gpu_settings_clocks="max")
    assert found.status is Status.PASS
    assert "cannot be read back" in found.evidence[0]
    failed_unit = said(f"{DAEMON}\n\n{unit(gpu_settings.CLOCKS_UNIT, 'failed', 'enabled')}\n")
    assert "is failed" in find("gpu.clocks", items={"units": failed_unit}, gpu_settings_clocks="max").actual


def test_clocks_that_no_card_supports_are_skipped_with_the_reason() -> None:
    found = find("gpu.clocks", gpu(0, supported_clocks=NOT_TOLD), gpu_settings_clocks="max")
    assert found.status is Status.SKIP
    assert "not supported on this card" in found.actual


def test_a_refused_value_is_a_fail_that_says_why() -> None:
    host, _ = converged()
    found = CONTROLS["gpu.clocks"].find(
        Judged(host, profile(gpu_settings_clocks={"graphics": 1400}), stack())
    )
    assert found.status is Status.FAIL
    assert "nearest are 1395 and 1410" in found.actual


def test_ib_that_the_profile_switches_off_is_a_warning_and_plugins_are_named() -> None:
    plugin = {"path": "/opt/hpcx/nccl_rdma_sharp_plugin/lib/libnccl-net.so", "kind": "file", "package": None}
    items = {"rdma": said([port("mlx5_0")]), "nvidia.files": said([plugin])}
    found = find("nccl.ib", items=items, nccl_variables={"NCCL_IB_DISABLE": 1})
    assert found.status is Status.WARN
    assert "NCCL_IBEXT_DISABLE" in found.evidence[0]


def test_an_old_branch_that_is_still_packaged_warns_and_one_that_nobody_mends_or_no_set_fails() -> None:
    driver = stack().driver
    assert driver is not None
    old = Stack(
        True, driver=driver, warnings=(Warning_("end-of-life", "R535 ended in June 2026", "a table"),)
    )
    assert find("driver.branch-supported", chosen=old).status is Status.WARN
    dead = replace(old, driver=replace(driver, mended=False))
    found = find("driver.branch-supported", chosen=dead)
    assert (found.status, found.actual) == (Status.FAIL, "R535 ended in June 2026")
    none = Stack(False, conflicts=(Conflict(("--driver 470",), "too old", "drop it", "a table"),))
    assert find("driver.supports-gpus", chosen=none).status is Status.FAIL


def test_a_mismatch_names_what_apt_did() -> None:
    log = (
        "Start-Date: 2026-11-29  06:12:01\nCommandline: /usr/bin/unattended-upgrade\n"
        f"Upgrade: libcuda1:amd64 (535.216.01-1, {RELEASE}-1)\nEnd-Date: 2026-11-29  06:12:09\n"
    )
    found = find("driver.loaded-matches-installed", items={**LOADED_OTHER, "apt.history": said(log)})
    assert "unattended-upgrade" in found.evidence[0]


def test_held_back_names_come_from_apt() -> None:
    assert set(nvidia_driver.wanted(facts(), profile(), stack()).holds) == {*DRIVER, *BESIDE}


def test_kernels_are_named_in_what_is_expected() -> None:
    assert KERNEL in find("driver.next-boot").expected
    assert provision.controls.driver.ROLE == "nvidia_driver"
    assert {provision.controls.gpu.ROLE, provision.controls.nccl.ROLE} == {"gpu_settings", "nccl"}
    assert provision.controls.host.sources is not None


def test_misspelt_and_unread_names_of_a_users_own_file_warn() -> None:
    lines = "NCCL_SOKET_IFNAME=eth0\nNCCL_WORK_FIFO_DEPTH=8\nNCCL_DEBUG=WARN\nOMP_NUM_THREADS=4\n"
    items = {"file:/etc/nccl.conf": text(lines), "dpkg.list": dpkg({"libnccl2": "2.28.7-1+cuda13.0"})}
    found = find("nccl.known-names", items=items)
    assert (found.status, found.role) == (Status.WARN, None)
    assert "near NCCL_SOCKET_IFNAME" in found.evidence[0]
    assert "2.21.5 was the last" in found.evidence[1]
    assert len(found.evidence) == 2
    right = find("nccl.known-names", items={**items, "file:/etc/nccl.conf": text("NCCL_DEBUG=WARN\n")})
    assert right.status is Status.PASS


@pytest.mark.parametrize("folder", ["/etc/modprobe.d/*", "/lib/modprobe.d/*nvidia*"])
@pytest.mark.parametrize(
    "line", ["blacklist nouveau", "install nouveau /bin/false", "blacklist  nouveau # ours"]
)
def test_a_file_of_somebody_elses_keeps_nouveau_out_as_well(folder: str, line: str) -> None:
    path = folder.partition("*")[0] + "nvidia-graphics-drivers.conf"
    items = {
        MODPROBE: MISSING,
        f"glob:{folder}": {"paths": [path]},
        f"file:{path}": text(f"# shipped\n{line}\n"),
    }
    found = find("driver.rival-module", items=items)
    assert (found.status, found.actual) == (Status.PASS, f"kept out by {path}")
    taken = find("driver.rival-module", items={**items, "pci": pci("nvidia", "nouveau")})
    assert taken.status is Status.FAIL
    other = find(
        "driver.rival-module", items={**items, f"file:{path}": text("# blacklist nouveau\nblacklist i2c\n")}
    )
    assert other.status is Status.FAIL
