"""Why the driver does not answer: the texts of nvidia-smi told apart."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING

from .answers import quote, words
from .known import ABSENT, Absent, Unknown
from .pci import bus_id
from .record import record
from .smi_model import SmiReport

if TYPE_CHECKING:
    from ..recording.model import Answer
    from .kernels import LoadedDriver


class SmiTrouble(StrEnum):
    """One cause each, because each is mended in another way."""

    NOT_INSTALLED = "not-installed"
    """No nvidia-smi, no library of it, or no module on disk for any kernel: packages are missing."""
    NOT_LOADED = "not-loaded"
    """The driver is installed, its module is not in the running kernel."""
    VERSION_MISMATCH = "version-mismatch"
    """Module and library are of different releases: an upgrade without a reboot."""
    HANG = "hang"
    """nvidia-smi did not end within its time limit."""
    NO_DEVICES = "no-devices"
    """The module is loaded and serves no GPU."""
    LOST = "lost"
    """A GPU fell off the bus."""
    NO_RIGHTS = "no-rights"
    """The caller may not open /dev/nvidia*."""
    NVML_UNKNOWN = "nvml-unknown"
    """`Unknown Error` on initialising NVML: devices taken away by a cgroup, or a broken GPU."""
    OTHER = "other"
    """A text that is not known here; it is quoted."""


@record
class DriverSilence:
    """The cause with nvidia-smi's own words, the GPUs it names and, for a mismatch, the library's version."""

    trouble: SmiTrouble
    says: str
    bus_ids: tuple[str, ...] = ()
    userspace_version: str | None = None


# The more telling text first: a lost GPU also says `Unknown Error`.
_TEXTS: tuple[tuple[SmiTrouble, str], ...] = (
    (
        SmiTrouble.VERSION_MISMATCH,
        r"driver/library version mismatch|API mismatch|RM version mismatch|nvml: function not found",
    ),
    (
        SmiTrouble.LOST,
        r"unable to determine the device handle for gpu.*(unknown error|gpu is lost|not found)"
        r"|gpu is lost|fallen off the bus",
    ),
    (
        SmiTrouble.NO_RIGHTS,
        r"insufficient permissions?|not have sufficient permissions|permission denied|no permission",
    ),
    (SmiTrouble.NOT_LOADED, r"couldn.t communicate with the nvidia driver|driver not loaded"),
    (
        SmiTrouble.NOT_INSTALLED,
        r"couldn.t find libnvidia-ml|libnvidia-ml\.so[.\d]*: cannot open|could not load.*nvml library"
        r"|nvml shared library not found|nvidia-smi: (command )?not found",
    ),
    (SmiTrouble.NO_DEVICES, r"no (supported gpus|devices) (were )?found"),
    (SmiTrouble.NVML_UNKNOWN, r"initialize nvml: (unknown error|gpu access blocked)"),
)


def silence(
    answer: Answer,
    report: SmiReport | Unknown,
    loaded: LoadedDriver | Absent | Unknown,
    installed: bool | Unknown,
) -> DriverSilence | Unknown | None:
    """Why there is no report; None where there is one with every GPU that the driver counts.

    `installed` says whether a driver is on the host at all: where the module is not loaded,
    nvidia-smi is never asked, because asking would load it.
    """
    if isinstance(report, SmiReport):
        return _in_report(report)
    if answer.timed_out:
        return DriverSilence(SmiTrouble.HANG, report.reason)
    if answer.missing:
        return DriverSilence(SmiTrouble.NOT_INSTALLED, report.reason)
    if answer.raw.get("left_behind"):
        # Not asked again, because an earlier nvidia-smi still hangs in the driver.
        return DriverSilence(SmiTrouble.HANG, report.reason)
    if answer.denied:
        return DriverSilence(SmiTrouble.NO_RIGHTS, quote(words(answer)) or report.reason)
    if answer.not_asked is not None:
        if loaded is not ABSENT or isinstance(installed, Unknown):
            return report
        return DriverSilence(SmiTrouble.NOT_LOADED if installed else SmiTrouble.NOT_INSTALLED, report.reason)
    said = words(answer)
    return _told(said) or DriverSilence(SmiTrouble.OTHER, quote(said) or "nvidia-smi printed nothing")


def _in_report(report: SmiReport) -> DriverSilence | None:
    lost = tuple(gpu.bus_id for gpu in report.gpus if gpu.lost)
    if lost:
        return DriverSilence(SmiTrouble.LOST, f"GPU is lost: {', '.join(lost)}", lost)
    around = _told("\n".join(report.notes))
    if around is not None:
        return around
    if not report.gpus:
        return DriverSilence(SmiTrouble.NO_DEVICES, "nvidia-smi answers and lists no GPU")
    return None


def _told(said: str) -> DriverSilence | None:
    for trouble, pattern in _TEXTS:
        if re.search(pattern, said, re.IGNORECASE):
            named = dict.fromkeys(
                filter(None, (bus_id(t) for t in re.findall(r"GPU\s*([0-9A-Fa-f:.]+)", said)))
            )
            library = re.search(r"NVML library version:\s*([\d.]+\d)", said)
            return DriverSilence(trouble, quote(said), tuple(named), library[1] if library else None)
    return None
