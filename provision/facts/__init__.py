"""Facts: what a recording means, as typed values, each known or Unknown with the reason.

    facts = Facts(recording)
    facts.smi.gpus[0].persistence        # True, False, or Unknown
    facts.file("/etc/fstab")             # the text, ABSENT, or Unknown

A fact is read when it is first asked for and then kept. Nothing here judges or runs anything. What a
fact's type is, and what each of its fields means, stands with its parser: a module a subject.
"""

from __future__ import annotations

import fnmatch
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from . import accounts as _accounts
from . import apt as _apt
from . import apt_sources as _apt_sources
from . import containers as _containers
from . import cuda as _cuda
from . import disk_contents as _disk_contents
from . import disk_health as _disk_health
from . import disks as _disks
from . import docker_flags as _docker_flags
from . import firewall as _firewall
from . import host as _host
from . import kernel_log as _kernel_log
from . import kernels as _kernels
from . import lvm as _lvm
from . import mounts as _mounts
from . import network as _network
from . import nvidia_files as _nvidia_files
from . import nvidia_smi as _smi
from . import packages as _packages
from . import pci as _pci
from . import smi_list as _smi_list
from . import smi_trouble as _trouble
from . import snapshots as _snapshots
from . import sshd as _sshd
from . import surfaces as _surfaces
from . import system as _system
from . import topology as _topology
from . import units as _units
from .answers import output
from .known import ABSENT, Absent, Unknown

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..recording.model import Recording

T = TypeVar("T")
# A listing this long may have been cut, so it is no proof that a file is not there.
_LONGEST_LISTING = 200


def _fact(read: Callable[..., T], *items: str) -> cached_property[T]:
    """A fact that one parser reads from the answers to these items."""

    def value(facts: Facts) -> T:
        return read(*(facts.recording.answer(item) for item in items))

    return cached_property(value)


class Facts:
    """One host's facts. Any recording will do: what it lacks is Unknown."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording

    def file(self, path: str) -> str | Absent | Unknown:
        """A file's text; ABSENT where the host is known to have no such file."""
        if f"file:{path}" not in self.recording.items and self._listed_without(path):
            return ABSENT
        answer = self.recording.file(path)
        return ABSENT if answer.missing else output(answer)

    def files(self, pattern: str) -> dict[str, str | Unknown] | Unknown:
        """Texts by path of the files that a recorded glob lists; `pattern` is the glob itself."""
        answer = self.recording.answer(f"glob:{pattern}")
        paths = answer.raw.get("paths")
        if not isinstance(paths, list):
            return Unknown(answer.silence or f"{answer.item} holds no paths", answer.item)
        return {str(path): output(self.recording.file(str(path))) for path in paths}

    def _listed_without(self, path: str) -> bool:
        """Whether the recording lists the files of a folder, all of them, and this is none of them."""
        for item in self.recording.items:
            pattern = item.removeprefix("glob:")
            if (
                pattern == item
                or pattern.count("/") != path.count("/")
                or not fnmatch.fnmatchcase(path, pattern)
            ):
                continue
            paths = self.recording.answer(item).raw.get("paths")
            if isinstance(paths, list) and len(paths) < _LONGEST_LISTING and path not in paths:
                return True
        return False

    # The machine

    os = _fact(_host.os_release, "os-release")
    _uname = _fact(_host.uname, "uname")
    python = _fact(_host.python, "python")
    virtualization = _fact(_host.virtualization, "virtualization")
    secure_boot = _fact(_host.secure_boot, "secure-boot")
    dkms_key_enrolled = _fact(_host.key_enrolled, "secure-boot.dkms-key")
    shim_key_enrolled = _fact(_host.key_enrolled, "secure-boot.shim-key")
    machine = _fact(_system.machine, "dmi")
    cpu = _fact(_system.cpu, "cpu")
    memory = _fact(_system.memory, "memory")
    limits = _fact(_system.limits, "limits")
    sysctl = _fact(_system.sysctl, "sysctl")
    time = _fact(_system.clock, "time")
    rights = _fact(_system.rights, "rights")

    @property
    def arch(self) -> str | Unknown:
        """`x86_64`, `aarch64`, …"""
        return self._uname if isinstance(self._uname, Unknown) else self._uname.arch

    @property
    def running_kernel(self) -> str | Unknown:
        return self._uname if isinstance(self._uname, Unknown) else self._uname.release

    # Kernels and modules

    kernels = _fact(_kernels.kernels, "kernels")
    modules_loaded = _fact(_kernels.modules, "lsmod")
    modinfo = _fact(_kernels.modinfo, "modinfo.nvidia")
    dkms = _fact(_kernels.dkms, "dkms.status")
    kernel_log = _fact(_kernel_log.kernel_log, "dmesg")

    @cached_property
    def loaded_driver(self) -> _kernels.LoadedDriver | Absent | Unknown:
        """The nvidia module in the running kernel."""
        return _kernels.loaded_driver(
            self.recording.file("/proc/driver/nvidia/version"),
            self.recording.file("/sys/module/nvidia/version"),
            self.modules_loaded,
        )

    @cached_property
    def driver_installed(self) -> bool | Unknown:
        """Whether an nvidia module is on disk for any kernel."""
        if isinstance(self.modinfo, _kernels.ModInfo):
            return True
        if isinstance(self.kernels, Unknown):
            return False if self.modinfo is ABSENT else self.kernels
        return any(kernel.nvidia_module for kernel in self.kernels)

    # The bus

    pci = _fact(_pci.devices, "pci", "lspci")

    @property
    def nvidia_gpus_on_bus(self) -> tuple[_pci.PciDevice, ...] | Unknown:
        """GPUs that the bus shows, driver or not."""
        return self.pci if isinstance(self.pci, Unknown) else tuple(d for d in self.pci if d.is_nvidia_gpu)

    @property
    def nvswitches(self) -> tuple[_pci.PciDevice, ...] | Unknown:
        return self.pci if isinstance(self.pci, Unknown) else tuple(d for d in self.pci if d.is_nvswitch)

    # The driver's own answers

    smi = _fact(_smi.report, "nvidia-smi.query")
    smi_list = _fact(_smi_list.gpus, "nvidia-smi.list")
    nvlinks = _fact(_smi_list.nvlinks, "nvidia-smi.nvlink")
    topology = _fact(_topology.topology, "nvidia-smi.topology")

    @cached_property
    def driver_silence(self) -> _trouble.DriverSilence | Unknown | None:
        """Why the driver does not answer, with its words; None where it answers for every GPU."""
        answer = self.recording.answer("nvidia-smi.query")
        return _trouble.silence(answer, self.smi, self.loaded_driver, self.driver_installed)

    @property
    def smi_trouble(self) -> _trouble.SmiTrouble | Unknown | None:
        """The kind of driver_silence."""
        why = self.driver_silence
        return why.trouble if isinstance(why, _trouble.DriverSilence) else why

    # NVIDIA's files

    gpu_device_nodes = _fact(_nvidia_files.device_nodes, "nvidia.devices")
    gpu_users = _fact(_nvidia_files.gpu_users, "nvidia.processes")
    driver_files = _fact(_nvidia_files.driver_files, "nvidia.files")
    cuda_toolkits = _fact(_cuda.toolkits, "cuda.installed")
    cuda_conda = _fact(_cuda.conda, "cuda.conda")
    cuda_alternative = _fact(_cuda.alternative, "file:/var/lib/dpkg/alternatives/cuda")

    # Packages

    packages = _fact(_packages.packages, "dpkg.list", "rpm.list")
    policy = _fact(_apt.policy, "apt.policy")
    apt_history = _fact(_apt.history, "apt.history")
    apt_locks = _fact(_apt.locks, "apt.locks")
    apt_lists_fetched = _fact(_apt.newest_list, "apt.lists")

    @cached_property
    def holds(self) -> frozenset[str] | Unknown:
        """Names of packages that apt holds back."""
        return _packages.holds(self.recording.answer("apt.holds"), self.packages)

    @cached_property
    def apt_sources(self) -> tuple[_apt_sources.AptSource, ...] | Absent | Unknown:
        """Where apt gets packages from; ABSENT where the host has no apt sources."""
        return _apt_sources.sources(self.recording)

    @cached_property
    def snapshots(self) -> tuple[_snapshots.Snapshot, ...] | Unknown:
        """What the host can be put back to, oldest first."""
        if not self.recording.as_root:
            return Unknown("only root may look at the snapshots of a host", _snapshots.PATTERN)
        return _snapshots.snapshots(self.files(_snapshots.PATTERN))

    # Services, logins

    units = _fact(_units.units, "units")
    failed_units = _fact(_units.failed, "units.failed")
    unit_files = _fact(_units.listed, "units.files")
    units_running = _fact(_units.listed, "units.running")
    sshd = _fact(_sshd.sshd, "sshd.effective", "sshd.files")
    accounts = _fact(_accounts.accounts, "accounts")
    other_accounts = _fact(_accounts.others, "accounts.other")

    # Network

    interfaces = _fact(_network.interfaces, "ip.addresses", "ip.links", "net")
    default_routes = _fact(_network.default_routes, "ip.routes")
    sockets = _fact(_firewall.sockets, "sockets")
    firewall = _fact(_firewall.firewall, "firewall")

    @cached_property
    def rdma(self) -> tuple[_network.RdmaPort, ...] | Unknown:
        """RDMA ports, with vendor and driver of the device behind each from the bus."""
        ports = _network.rdma(self.recording.answer("rdma"))
        if isinstance(ports, Unknown) or isinstance(self.pci, Unknown):
            return ports
        bus = {device.address: device for device in self.pci}
        return tuple(
            replace(port, vendor=port.vendor or device.vendor, driver=port.driver or device.driver)
            if port.address is not None and (device := bus.get(port.address)) is not None
            else port
            for port in ports
        )

    # Disks

    blkid = _fact(_disks.signatures, "blkid")
    surfaces = _fact(_surfaces.surfaces, "disks.surfaces")
    mounts = _fact(_mounts.mounts, "findmnt")
    raids = _fact(_disk_health.raids, "mdstat")
    nvme_health = _fact(_disk_health.nvme_health, "nvme.smart")
    space = _fact(_mounts.space, "disks.space")
    logical_volumes = _fact(_lvm.volumes, "lvm")
    volume_groups = _fact(_lvm.groups, "lvm.groups")

    @cached_property
    def block_devices(self) -> tuple[_disks.BlockDevice, ...] | Unknown:
        """All block devices as trees, with what each holds and its stable names."""
        devices = _disks.block_devices(self.recording.answer("lsblk"), self.blkid)
        ids = _disks.ids(self.recording.answer("disks.by-id"))
        if isinstance(devices, Unknown) or isinstance(ids, Unknown):
            return devices
        return _disks.with_ids(devices, ids)

    @property
    def disks(self) -> tuple[_disks.BlockDevice, ...] | Unknown:
        """The disks among the block devices: no RAM disks, loops, optical drives or empty slots."""
        devices = self.block_devices
        if isinstance(devices, Unknown):
            return devices
        return tuple(
            d for d in devices if d.kind == "disk" and d.size > 0 and not d.name.startswith(("zram", "ram"))
        )

    def contents(self, path: str) -> tuple[str, ...] | Unknown:
        """All that is on the disk of that path, in words; empty only where it is known to be empty."""
        disks = self.disks
        if isinstance(disks, Unknown):
            return disks
        disk = next((d for d in disks if d.path == path), None)
        if disk is None:
            return Unknown(f"there is no disk {path}", "lsblk")
        return _disk_contents.contents(disk, self.surface(disk))

    def surface(self, disk: _disks.BlockDevice) -> _surfaces.Surface | Unknown:
        """What lies on one disk itself."""
        found = self.surfaces
        if isinstance(found, Unknown):
            return found
        return found.get(disk.name, Unknown(f"nothing was told of {disk.path}", "disks.surfaces"))

    @cached_property
    def fstab(self) -> tuple[_mounts.FstabEntry, ...] | Absent | Unknown:
        return _mounts.fstab(self.file("/etc/fstab"))

    # Containers

    docker = _fact(_containers.docker, "docker.info")
    docker_unit = _fact(_units.unit_text, "docker.unit")
    docker_flags = _fact(_docker_flags.flags, "docker.unit", "file:/etc/default/docker")
    docker_started = _fact(_containers.started, "docker.started")
    daemon_json_form = _fact(_containers.daemon_json_form, f"file:{_containers.DAEMON_JSON}")
    cdi = _fact(_containers.cdi, "cdi")

    @cached_property
    def engines(self) -> tuple[_containers.Engine, ...] | Unknown:
        """Container engines on the host, and whose build each is."""
        return _containers.engines(self.packages, self.units)

    @cached_property
    def daemon_json(self) -> dict[str, Any] | Absent | Unknown:
        """/etc/docker/daemon.json; Unknown with line and column where it is no JSON."""
        return _containers.daemon_json(self.file(_containers.DAEMON_JSON))
