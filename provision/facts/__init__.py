"""Facts: what a recording means, as typed values, each known or Unknown with the reason.

    facts = Facts(recording)
    facts.smi.gpus[0].persistence        # True, False, or Unknown
    facts.file("/etc/fstab")             # the text, ABSENT, or Unknown

A fact is read when it is first asked for and then kept. Nothing here judges or runs anything.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from . import accounts as _accounts
from . import host as _host
from . import kernels as _kernels
from . import network as _network
from . import nvidia_smi as _smi
from . import packages as _packages
from . import pci as _pci
from . import smi_trouble as _trouble
from . import sshd as _sshd
from . import topology as _topology
from . import units as _units
from .answers import output
from .known import ABSENT, Absent, Unknown

if TYPE_CHECKING:
    from .smi_model import SmiReport
    from collections.abc import Mapping

    from ..recording.model import Recording


class Facts:
    """One host's facts. Any recording will do: what it lacks is Unknown."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording

    def file(self, path: str) -> str | Absent | Unknown:
        """A file's text; ABSENT where the host has no such file."""
        answer = self.recording.file(path)
        return ABSENT if answer.missing else output(answer)

    # The machine

    @cached_property
    def os(self) -> _host.OsRelease | Unknown:
        return _host.os_release(self.recording.answer("os-release"))

    @cached_property
    def _uname(self) -> _host.Uname | Unknown:
        return _host.uname(self.recording.answer("uname"))

    @property
    def arch(self) -> str | Unknown:
        """`x86_64`, `aarch64`, …"""
        return self._uname if isinstance(self._uname, Unknown) else self._uname.arch

    @property
    def running_kernel(self) -> str | Unknown:
        return self._uname if isinstance(self._uname, Unknown) else self._uname.release

    @cached_property
    def python(self) -> tuple[int, int, int] | Absent | Unknown:
        return _host.python(self.recording.answer("python"))

    @cached_property
    def virtualization(self) -> _host.Virtualization | Unknown:
        return _host.virtualization(self.recording.answer("virtualization"))

    @cached_property
    def secure_boot(self) -> _host.SecureBoot | Unknown:
        return _host.secure_boot(self.recording.answer("secure-boot"))

    # Kernels and modules

    @cached_property
    def kernels(self) -> tuple[_kernels.InstalledKernel, ...] | Unknown:
        return _kernels.kernels(self.recording.answer("kernels"))

    @cached_property
    def modules_loaded(self) -> frozenset[str] | Unknown:
        """Names of loaded modules, with underscores."""
        return _kernels.modules(self.recording.answer("lsmod"))

    @cached_property
    def modinfo(self) -> _kernels.ModInfo | Absent | Unknown:
        """The nvidia module on disk for the running kernel."""
        return _kernels.modinfo(self.recording.answer("modinfo.nvidia"))

    @cached_property
    def dkms(self) -> tuple[_kernels.DkmsModule, ...] | Absent | Unknown:
        return _kernels.dkms(self.recording.answer("dkms.status"))

    @cached_property
    def loaded_driver(self) -> _kernels.LoadedDriver | Absent | Unknown:
        """The nvidia module in the running kernel."""
        return _kernels.loaded_driver(
            self.recording.file("/proc/driver/nvidia/version"),
            self.recording.file("/sys/module/nvidia/version"),
            self.modules_loaded,
            self.modinfo,
        )

    # The bus

    @cached_property
    def pci(self) -> tuple[_pci.PciDevice, ...] | Unknown:
        return _pci.devices(self.recording.answer("pci"), self.recording.answer("lspci"))

    @property
    def nvidia_gpus_on_bus(self) -> tuple[_pci.PciDevice, ...] | Unknown:
        """GPUs that the bus shows, driver or not."""
        return self.pci if isinstance(self.pci, Unknown) else tuple(d for d in self.pci if d.is_nvidia_gpu)

    @property
    def nvswitches(self) -> tuple[_pci.PciDevice, ...] | Unknown:
        return self.pci if isinstance(self.pci, Unknown) else tuple(d for d in self.pci if d.is_nvswitch)

    # The driver's own answers

    @cached_property
    def smi(self) -> SmiReport | Unknown:
        """`nvidia-smi -q -x`."""
        return _smi.report(self.recording.answer("nvidia-smi.query"))

    @cached_property
    def driver_silence(self) -> _trouble.DriverSilence | Unknown | None:
        """Why the driver does not answer, with its words; None where it answers for every GPU."""
        return _trouble.silence(
            self.recording.answer("nvidia-smi.query"), self.smi, self.loaded_driver, self.driver_installed
        )

    @property
    def smi_trouble(self) -> _trouble.SmiTrouble | Unknown | None:
        """The kind of driver_silence."""
        why = self.driver_silence
        return why.trouble if isinstance(why, _trouble.DriverSilence) else why

    @cached_property
    def driver_installed(self) -> bool | Unknown:
        """Whether an nvidia module is on disk for any kernel."""
        if isinstance(self.modinfo, _kernels.ModInfo):
            return True
        if isinstance(self.kernels, Unknown):
            return False if self.modinfo is ABSENT else self.kernels
        return any(kernel.nvidia_module for kernel in self.kernels)

    @cached_property
    def topology(self) -> _topology.Topology | Unknown:
        """`nvidia-smi topo -m`."""
        return _topology.topology(self.recording.answer("nvidia-smi.topology"))

    # Packages

    @cached_property
    def packages(self) -> _packages.Packages | Unknown:
        return _packages.packages(self.recording.answer("dpkg.list"), self.recording.answer("rpm.list"))

    @cached_property
    def holds(self) -> frozenset[str] | Unknown:
        """Names of packages that apt holds back."""
        return _packages.holds(self.recording.answer("apt.holds"), self.packages)

    # Services, logins, network

    @cached_property
    def units(self) -> Mapping[str, _units.UnitState] | Absent | Unknown:
        """systemd units by name; ABSENT where the host has no systemd."""
        return _units.units(self.recording.answer("units"))

    @cached_property
    def sshd(self) -> _sshd.Sshd | Absent | Unknown:
        return _sshd.sshd(self.recording.answer("sshd.effective"), self.recording.answer("sshd.files"))

    @cached_property
    def accounts(self) -> tuple[_accounts.Account, ...] | Unknown:
        return _accounts.accounts(self.recording.answer("accounts"))

    @cached_property
    def interfaces(self) -> tuple[_network.Interface, ...] | Unknown:
        return _network.interfaces(self.recording.answer("ip.addresses"), self.recording.answer("ip.links"))

    @cached_property
    def default_routes(self) -> tuple[_network.DefaultRoute, ...] | Unknown:
        return _network.default_routes(self.recording.answer("ip.routes"))

    @cached_property
    def rdma(self) -> tuple[_network.RdmaPort, ...] | Unknown:
        return _network.rdma(self.recording.answer("rdma"))
