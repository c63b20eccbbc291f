"""One sign of trouble at a time on a healthy host: the control that reads it tells it, and says so in words."""

# ruff: noqa: E501

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest
from cases import HEALTHY, baseline, judged

from provision.controls.model import Status
from provision.profile.declared import roles

SMI = "nvidia-smi.query"
BOOT = "[    0.000000] Linux version 6.1.0-57-amd64\n"


def smi(*edits: tuple[str, str], count: int = 0) -> dict[str, Any]:
    """nvidia-smi's answer with patterns replaced, everywhere or in the first `count` places."""
    answer = dict(HEALTHY.items[SMI])
    for pattern, new in edits:
        answer["stdout"], done = re.subn(pattern, new, answer["stdout"], count=count)
        assert done, pattern
    return {SMI: answer}


def log(*lines: str) -> dict[str, Any]:
    return {
        "dmesg": {
            "rc": 0,
            "stdout": BOOT + "".join(f"[ {at}00.5] {line}\n" for at, line in enumerate(lines, 1)),
        }
    }


def said(value: Any) -> dict[str, Any]:
    return {"rc": 0, "stdout": value if isinstance(value, str) else json.dumps(value), "stderr": ""}


def smart(**changed: Any) -> dict[str, Any]:
    health = {"critical_warning": 0, "temperature": 35, "available_spare": 100, "available_spare_threshold": 10,
              "percentage_used": 3, "media_errors": 0}  # fmt: skip
    document = {"device": {"name": "/dev/nvme0"}, "smart_status": {"passed": changed.pop("passed", True)},
                "nvme_smart_health_information_log": {**health, **changed}}  # fmt: skip
    return {"nvme.smart": {"disks": [{"device": "/dev/nvme0", "rc": 0, "stdout": json.dumps(document)}]}}


def space(available: int, inodes_free: int = 900, kind: str = "ext4") -> dict[str, Any]:
    row = {"target": "/", "source": "/dev/sda1", "type": kind, "size": 1000, "free": available,
           "available": available, "inodes": 1000, "inodes_free": inodes_free}  # fmt: skip
    return {"disks.space": said([row])}


def cpu(**changed: Any) -> dict[str, Any]:
    return {"cpu": said({**json.loads(HEALTHY.items["cpu"]["stdout"]), **changed})}


def sockets(*rows: tuple[str, int, str]) -> dict[str, Any]:
    heard = [{"proto": "tcp", "address": a, "port": p, "program": name, "unit": None} for a, p, name in rows]
    return {"sockets": said(heard)}


def installed(name: str, version: str) -> dict[str, Any]:
    rows = HEALTHY.items["dpkg.list"]["stdout"] + f"ii \t{name}\t{version}\tamd64\n"
    return {"dpkg.list": said(rows)}


def fstab(line: str) -> dict[str, Any]:
    return {"file:/etc/fstab": {"text": f"UUID=0 / ext4 errors=remount-ro 0 1\n{line}\n"}}


NO_FILTER = {
    "firewall": {"rules": [{"argv": ["nft", "list", "ruleset"], "rc": 0, "stdout": "", "stderr": ""}]}
}
XID = "NVRM: Xid (PCI:0000:03:00): {code}, {text}"
LINK = r"<current_link_width>16x", "<current_link_width>8x"
BUSY = r"<gpu_util>0 %", "<gpu_util>97 %"
MEMLOCK = {"session": {"memlock": [8388608, 8388608]}, "services": {}, "systemd": {}}
KVM = {"virtualization": said("kvm\n")}
TOOLKIT = {"path": "/usr/local/cuda-12.2", "version": "12.2.2", "default": True, "nvcc": True}


@pytest.mark.parametrize(
    ("control", "items", "status", "words"),
    [
        # GPU health
        ("gpu.recovery-action", smi((r"<reset_required>No", "<reset_required>Yes")), "fail", "Reset"),
        ("gpu.recovery-action", smi((r"<drain_and_reset_recommended>No", "<drain_and_reset_recommended>Yes")), "fail", "Drain and Reset"),
        ("gpu.recovery-action", smi((r"(?s)<gpu_reset_status>.*?</gpu_reset_status>", "<gpu_recovery_action>Reboot</gpu_recovery_action>")), "fail", "Reboot"),
        ("gpu.recovery-action", smi((r"(?s)<gpu_reset_status>.*?</gpu_reset_status>", "")), "skip", "reports no"),
        ("gpu.health", smi((r"<reset_required>No", "<reset_required>Yes"), count=1), "fail", "GPU 0 (0000:03:00.0): the driver asks for: Reset"),
        ("gpu.health", smi((r"<gpu_temp>31 C", "<gpu_temp>90 C")), "fail", "90 C"),
        ("gpu.health", {SMI: {**HEALTHY.items[SMI], "rc": 14, "stderr": "WARNING: infoROM is corrupted at gpu 0000:03:00.0"}}, "fail", "infoROM is corrupted"),
        ("gpu.ecc", smi((r"<dram_uncorrectable>0", "<dram_uncorrectable>2"), count=1), "fail", "2 uncorrectable errors in DRAM"),
        ("gpu.ecc", smi((r"<sram_uncorrectable>0", "<sram_uncorrectable>1"), count=1), "fail", "1 uncorrectable errors in SRAM"),
        ("gpu.ecc", smi((r"<dram_uncorrectable>0", "<dram_uncorrectable>ERR!")), "unknown", "ERR!"),
        ("gpu.ecc", smi((r"<pending_ecc>Enabled", "<pending_ecc>Disabled"), count=1), "warn", "next reboot"),
        ("gpu.ecc", smi((r"(current|pending)_ecc>Enabled", r"\1_ecc>Disabled")), "skip", "switched off"),
        ("gpu.remapped-rows", smi((r"<remapped_row_pending>No", "<remapped_row_pending>Yes")), "fail", "rows wait for a reset"),
        ("gpu.remapped-rows", smi((r"<remapped_row_failure>No", "<remapped_row_failure>Yes")), "fail", "could not be replaced"),
        ("gpu.remapped-rows", smi((r"<pending_retirement>N/A", "<pending_retirement>Yes")), "fail", "pages wait for a reboot"),
        ("gpu.remapped-rows", smi((r"<retired_count>N/A", "<retired_count>30")), "fail", "60 pages retired"),
        ("gpu.remapped-rows", smi((r"<remapped_row_unc>0", "<remapped_row_unc>1")), "pass", "nothing pending"),
        ("gpu.throttle", smi((r"hw_thermal_slowdown>Not Active", "hw_thermal_slowdown>Active")), "fail", "hw_thermal_slowdown"),
        ("gpu.throttle", smi((r"sw_thermal_slowdown>Not Active", "sw_thermal_slowdown>Active")), "warn", "sw_thermal_slowdown"),
        ("gpu.throttle", smi((r"sw_power_cap>Not Active", "sw_power_cap>Active")), "pass", "none"),
        # The PCIe link: what an idle card does is no fault, nor is what a guest sees.
        ("gpu.pcie-link", smi((r"<current_link_gen>4", "<current_link_gen>1")), "skip", "idle"),
        ("gpu.pcie-link", smi(LINK), "skip", "width 8 of 16"),
        ("gpu.pcie-link", smi(LINK, BUSY), "warn", "width 8 of 16"),
        ("gpu.pcie-link", {**smi(LINK, BUSY), **KVM}, "skip", "virtual machine"),
        ("gpu.mig", smi((r"<pending_mig>Disabled", "<pending_mig>Enabled"), count=1), "warn", "waits for a reset"),
        # Xid events
        ("gpu.xid", log(XID.format(code=48, text="An uncorrectable double bit error (DBE) has been detected")), "fail", "Xid 48"),
        ("gpu.xid", log(XID.format(code=13, text="pid=1, name=python3, Graphics Exception")), "warn", "Xid 13"),
        ("gpu.xid", log(XID.format(code=999, text="something new")), "warn", "not in the table"),
        ("gpu.xid", log(*[XID.format(code=31, text="pid=1, name=a, MMU Fault")] * 3), "warn", "3 times"),
        ("gpu.xid", log("nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 30 LTSSM Fault Up"), "fail", "SXid 20034"),
        ("gpu.xid", log("nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 12028, Non-fatal, Link 32 egress"), "warn", "SXid 12028"),
        ("gpu.xid", log(XID.format(code=154, text="GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)")), "fail", "Xid 154"),
        ("gpu.xid", log(XID.format(code=154, text="GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)")), "pass", "none"),
        ("gpu.xid", {"dmesg": said("[ 9000.000000] usb 1-1: new device\n")}, "unknown", "lost its beginning"),
        ("gpu.xid", {**log(XID.format(code=79, text="lost")), "virtualization": said("lxc\n")}, "skip", "another machine's"),
        # Topology and fabric
        ("topology.nvlink", {"nvidia-smi.topology": said("\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV11\t0-31\nGPU1\tNV11\t X \t0-31\n")}, "fail", "GPU0 and GPU1 have NV11"),
        ("topology.readable", {"nvidia-smi.topology": said("\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV12\t0-31\nGPU1\tSYS\t X \t0-31\n")}, "fail", "GPU0 and GPU1"),
        ("topology.readable", {"nvidia-smi.topology": said("\tGPU0\tCPU Affinity\nGPU0\t X \t0-31\n")}, "fail", "the table has 1"),
        # Containers and CUDA
        ("container.cdi", {"cdi": said([{"path": "/etc/cdi/nvidia.yaml", "versions": ["535.261.03"], "kind": "nvidia.com/gpu"}])}, "fail", "535.261.03"),
        ("container.cdi", {"cdi": said([])}, "skip", "no CDI"),
        ("container.runtime", {"docker.info": said({"ServerVersion": "20.10.24", "CgroupDriver": "systemd", "Runtimes": {"runc": {"path": "runc"}}})}, "fail", "not restarted"),
        ("container.cgroup", {"file:/etc/nvidia-container-runtime/config.toml": {"text": 'mode = "cdi"\n'}}, "pass", "CDI"),
        ("cuda.driver-match", {"cuda.installed": said([{**TOOLKIT, "version": "13.0.0"}])}, "fail", "CUDA 13.0.0"),
        ("cuda.driver-match", {"cuda.installed": said([{**TOOLKIT, "version": "12.8.0"}])}, "warn", "CUDA 12.8.0"),
        ("cuda.driver-match", {"cuda.installed": said([{**TOOLKIT, "version": "13.0.0"}]), **installed("cuda-compat-13-0", "580.95.05-0ubuntu1")}, "warn", "forward compatibility"),
        ("cuda.driver-match", {"cuda.installed": said([{**TOOLKIT, "version": None}])}, "unknown", "names no version"),
        ("cuda.toolkit", {"cuda.installed": said([{**TOOLKIT, "default": False}])}, "warn", "names none"),
        ("cuda.toolkit", {"cuda.installed": said([{**TOOLKIT, "nvcc": False}])}, "warn", "no nvcc"),
        ("nccl.cuda-match", {"cuda.installed": said([{**TOOLKIT, "version": "11.8.0"}])}, "fail", "for CUDA 12"),
        ("cudnn.cuda-match", {"cuda.installed": said([{**TOOLKIT, "version": "11.8.0"}])}, "fail", "for CUDA 12"),
        ("cudnn.cuda-match", {"cuda.installed": said([])}, "pass", "libcudnn9-cuda-12"),
        # Storage
        ("storage.nvme-health", smart(critical_warning=4), "fail", "reliability"),
        ("storage.nvme-health", smart(percentage_used=104), "fail", "104 %"),
        ("storage.nvme-health", smart(percentage_used=92), "warn", "92 %"),
        ("storage.nvme-health", smart(available_spare=5), "fail", "5 % spare"),
        ("storage.nvme-health", smart(media_errors=7), "warn", "7 errors"),
        ("storage.nvme-health", smart(passed=False), "fail", "own test"),
        ("storage.nvme-health", smart(critical_warning=None), "unknown", "critical_warning"),
        ("storage.nofail", fstab("filer:/export /data nfs4 defaults,_netdev 0 0"), "skip", "no data mount"),
        ("storage.nofail", fstab("UUID=1 /data xfs defaults 0 2"), "warn", "/data has no nofail"),
        ("storage.stable-names", fstab("/dev/vda1 /data xfs defaults,nofail 0 2"), "warn", "/dev/vda1"),
        ("storage.data-mounts", fstab("UUID=1 /data xfs noauto 0 2"), "skip", "no data mount"),
        ("storage.full", space(20), "fail", "2 %"),
        ("storage.full", space(80), "warn", "8 %"),
        ("storage.full", space(500, inodes_free=10), "fail", "inodes"),
        ("storage.full", space(0, kind="squashfs"), "skip", "no local file system"),
        # The host
        ("host.cpu-governor", cpu(governors={"schedutil": 60, "performance": 4}), "warn", "schedutil on 60"),
        ("host.cpu-governor", cpu(governors={}), "skip", "no clocks"),
        ("host.numa", {"sysctl": said("kernel.numa_balancing = 1\nvm.zone_reclaim_mode = 0\n")}, "warn", "numa_balancing"),
        ("host.numa", cpu(nodes=[{"node": 0, "cpus": "0-63"}]), "skip", "one NUMA node"),
        ("host.memlock", {"limits": said(MEMLOCK)}, "warn", "8388608"),
        ("host.memlock", {"rdma": said([])}, "skip", "no RDMA"),
        ("host.time-sync", {"time": said("Timezone=Etc/UTC\nNTP=no\nNTPSynchronized=no\n")}, "warn", "chrony.service runs"),
        # Network and updates
        ("firewall.default-deny", NO_FILTER, "fail", "IPv4 and IPv6"),
        ("firewall.unasked-services", {**NO_FILTER, **sockets(("0.0.0.0", 8080, "python3"), ("127.0.0.1", 6379, "redis"))}, "warn", "8080/tcp (python3)"),
        ("firewall.unasked-services", {**NO_FILTER, **sockets(("0.0.0.0", 22, "sshd"))}, "pass", "sshd"),
        ("firewall.open-ports", {**NO_FILTER, **sockets(("0.0.0.0", 22, "sshd"))}, "fail", "/etc/gpu-provision/firewall.nft"),
        ("firewall.open-ports", {**NO_FILTER, **sockets(("127.0.0.1", 22, "sshd"))}, "fail", "nothing would let anybody in"),
        ("firewall.docker-published", sockets(("0.0.0.0", 9000, "docker-proxy")), "warn", "9000/tcp"),
        ("updates.schedule", {"file:/etc/apt/apt.conf.d/20auto-upgrades": {"text": 'APT::Periodic::Unattended-Upgrade "0";\n'}}, "warn", "nothing installs"),
        ("updates.schedule", {"file:/etc/apt/apt.conf.d/20auto-upgrades": {"text": 'APT { Periodic { Unattended-Upgrade "1"; } }\n// APT::Periodic::Unattended-Upgrade "0";\n'}}, "pass", "apt-daily-upgrade.timer"),
        ("driver.unattended-upgrades", {"apt.holds": said("bash\n")}, "warn", "may be upgraded at night"),
        ("driver.unattended-upgrades", {"apt.holds": said("bash\n"), "file:/etc/apt/apt.conf.d/20auto-upgrades": {"text": 'APT::Periodic::Unattended-Upgrade "1";\nUnattended-Upgrade::Package-Blacklist { "nvidia-"; "libnvidia-"; "libcuda"; };\n'}}, "pass", "left out"),
        ("host.python", {"python": {"missing": True}}, "warn", "no Python"),
    ],
)  # fmt: skip
def test_a_sign(control: str, items: dict[str, Any], status: str, words: str) -> None:
    finding = judged(replace(HEALTHY, items={**HEALTHY.items, **items}))[control]
    assert finding.status == status, finding
    assert words in finding.actual, finding
    if finding.status in (Status.FAIL, Status.WARN):
        assert finding.expected, finding
        assert finding != baseline()[control]


SHARED = "systemd-nspawn"


def test_a_container_is_not_judged_by_its_machine() -> None:
    inside = judged(replace(HEALTHY, items={**HEALTHY.items, "virtualization": said(f"{SHARED}\n")}))
    skipped = {
        name: f
        for name, f in inside.items()
        if f.status is Status.SKIP and baseline()[name].status is not Status.SKIP
    }
    assert set(skipped) == {
        "driver.loaded-matches-installed", "driver.secure-boot", "gpu.xid", "host.cpu-governor", "host.numa",
        "host.reboot-required", "host.time-sync", "storage.free-disks", "storage.nvme-health",
    }  # fmt: skip
    assert all(SHARED in f.actual for f in skipped.values())
    assert inside["driver.next-boot"].status is Status.PASS


def test_no_role_of_ours_is_named_where_none_mends_it() -> None:
    assert {found.role for found in baseline().values()} <= {None, *roles()}
