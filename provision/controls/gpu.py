"""Controls of the GPUs as the driver tells of them: that it answers for all, and that its settings hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..facts.cards_out import left_out
from ..facts.kernel_log import Refusal
from ..facts.known import Unknown
from ..facts.smi_trouble import DriverSilence, SmiTrouble
from ..planners import gpu_settings as planner
from .compare import files, units
from .model import Judged, Severity, Status, Verdict, control, failed, passed, skipped, unknown

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..facts.pci import PciDevice
    from ..facts.smi_model import SmiReport

ROLE = "gpu_settings"
NO_GPU = "there is no NVIDIA GPU on this host's bus"
# What each silence asks for; the texts of nvidia-smi are in facts/smi_trouble.
ADVICE = {
    SmiTrouble.NOT_INSTALLED: "The role nvidia_driver installs it.",
    SmiTrouble.NOT_LOADED: "The module is not in the running kernel: `modprobe nvidia` says why, or reboot.",
    SmiTrouble.VERSION_MISMATCH: "Module and library are of two releases: reboot, jobs drained first.",
    SmiTrouble.HANG: "The driver hangs in the kernel: look at dmesg for Xid lines, drain and reboot.",
    SmiTrouble.NO_DEVICES: "The module serves no card: look at dmesg (NVRM) for the reason.",
    SmiTrouble.LOST: "A card fell off the bus: reboot; if it comes back, look at power, cooling and seating.",
    SmiTrouble.NO_RIGHTS: "The login may not open /dev/nvidia*: record as root or with sudo.",
    SmiTrouble.NVML_UNKNOWN: "In a container its cgroup took the devices away; else look at dmesg.",
    SmiTrouble.OTHER: "",
}
# What is to be done for a card that the driver leaves out.
_LEFT_OUT = {
    Refusal.NEEDS_OPEN: "Install the open kernel modules: nvidia_driver_modules: open.",
    Refusal.NEEDS_PROPRIETARY: "Install the proprietary kernel modules: nvidia_driver_modules: proprietary.",
    Refusal.NOT_SERVED: "Install a branch that serves it.",
    Refusal.NO_POWER: "Connect its power cables.",
    Refusal.NO_ADDRESS_SPACE: "Switch `Above 4G Decoding` on in the firmware, or update it.",
}


def cards(host: Judged) -> tuple[PciDevice, ...] | Verdict:
    """The GPUs that the host's own driver is to serve: on the bus, and not given to a virtual machine."""
    gpus = host.facts.nvidia_gpus_on_bus
    if isinstance(gpus, Unknown):
        return unknown(gpus)
    ours = tuple(gpu for gpu in gpus if not gpu.passed_through)
    if not ours:
        return skipped(f"all GPUs are given to virtual machines ({gpus[0].driver})" if gpus else NO_GPU)
    return ours


def report(host: Judged) -> SmiReport | Verdict:
    """nvidia-smi's report, where there are cards to report of."""
    ours = cards(host)
    if isinstance(ours, Verdict):
        return ours
    smi = host.facts.smi
    return unknown(smi) if isinstance(smi, Unknown) else smi


@control(
    "gpu.answers",
    "The driver answers for every GPU",
    severity=Severity.HIGH,
    required=True,
    needs=("driver.installed", "driver.rival-module", "driver.loaded-matches-installed"),
)
def answers(host: Judged) -> Verdict:
    ours, why = cards(host), host.facts.driver_silence
    if isinstance(ours, Verdict) and not (ours.status is Status.UNKNOWN and _speaks_of_a_card(why)):
        return ours
    if isinstance(why, Unknown):
        return unknown(why)
    if isinstance(why, DriverSilence):
        refused = left_out(host.facts) if why.trouble is SmiTrouble.NO_DEVICES else {}
        return failed(
            "every GPU answers" if isinstance(ours, Verdict) else f"{len(ours)} GPUs answer",
            f"{why.trouble}: {why.says}",
            advice=what_to_do(refused.values()) or ADVICE[why.trouble],
            evidence=(*why.bus_ids, *(f"{bus}: {reason}" for bus, reason in refused.items())),
        )
    assert not isinstance(ours, Verdict)
    return passed(f"{len(ours)} GPUs", evidence=_names(host))


def what_to_do(reasons: Iterable[Refusal]) -> str:
    """The advice for cards that the driver leaves out."""
    return " ".join(dict.fromkeys(_LEFT_OUT[reason] for reason in reasons))


def _speaks_of_a_card(why: DriverSilence | Unknown | None) -> bool:
    """Whether the driver's words settle the matter where the bus was not recorded."""
    without = (SmiTrouble.NOT_INSTALLED, SmiTrouble.NOT_LOADED, SmiTrouble.NO_DEVICES)
    return isinstance(why, DriverSilence) and why.trouble not in without


def _names(host: Judged) -> tuple[str, ...]:
    smi = host.facts.smi
    if isinstance(smi, Unknown):
        return ()
    return tuple(f"GPU {g.index}: {g.name} at {g.bus_id}" for g in smi.gpus if isinstance(g.name, str))


@control(
    "gpu.count",
    "The driver serves each GPU that the bus has",
    severity=Severity.HIGH,
    required=True,
    needs=("gpu.answers",),
)
def count(host: Judged) -> Verdict:
    ours, smi = cards(host), report(host)
    if isinstance(ours, Verdict):
        return ours
    if isinstance(smi, Verdict):
        return smi
    served = {gpu.bus_id for gpu in smi.gpus}
    lost = [gpu for gpu in ours if gpu.address not in served]
    if not lost:
        return passed(f"{len(ours)} on the bus, {len(smi.gpus)} answer")
    refused = left_out(host.facts)
    reasons = {gpu.address: refused[gpu.address] for gpu in lost if gpu.address in refused}
    return failed(
        f"{len(ours)} GPUs answer",
        f"{len(smi.gpus)} answer",
        advice=what_to_do(reasons.values())
        or "Look at dmesg (NVRM) for the address: a card that is not supported, or one that failed.",
        evidence=tuple(
            f"{gpu.address} {gpu.name} ({gpu.id}) does not answer"
            + (f": {reasons[gpu.address]}" if gpu.address in reasons else "")
            for gpu in lost
        ),
    )


@control(
    "gpu.persistence",
    "Persistence mode is as the profile says, now and after a reboot",
    role=ROLE,
    needs=("gpu.answers",),
)
def persistence(host: Judged) -> Verdict:
    smi = report(host)
    if isinstance(smi, Verdict):
        return smi
    wanted = host.profile["gpu_settings_persistence"]
    word = "Enabled" if wanted else "Disabled"
    expected = f"{word} on every GPU, and kept by {planner.DAEMON}" if wanted else f"{word} on every GPU"
    unclear = [gpu.persistence for gpu in smi.gpus if isinstance(gpu.persistence, Unknown)]
    if unclear:
        return unknown(unclear[0], expected=expected)
    odd = [
        f"GPU {gpu.index}: {'Enabled' if gpu.persistence else 'Disabled'}"
        for gpu in smi.gpus
        if gpu.persistence is not wanted
    ]
    whole = planner.wanted(host.facts, host.profile, host.stack)
    later = _after_reboot(host, whole)
    if isinstance(later, Verdict):
        return later
    if odd or later:
        told = (*odd, *later)
        return failed(expected, "; ".join(told), evidence=told, mendable=not whole.locked)
    return passed(f"{word} on {len(smi.gpus)} GPUs", expected=expected)


def _after_reboot(host: Judged, whole: planner.SettingsWanted) -> list[str] | Verdict:
    """What of the daemon's files and units is not as wanted: on now and on after a reboot are two things."""
    if whole.refused and planner.DAEMON in whole.refused:
        return [whole.refused]
    told = units(host, whole.units, planner.DAEMON)
    if isinstance(told, Verdict):
        return told
    return [*files(host, whole.files, planner.DROP_IN), *told]


@control(
    "gpu.clocks",
    "Clocks are as the profile says, now and after a reboot",
    role=ROLE,
    needs=("gpu.answers", "gpu.persistence"),
)
def clocks(host: Judged) -> Verdict:
    smi = report(host)
    if isinstance(smi, Verdict):
        return smi
    asked = host.profile["gpu_settings_clocks"]
    whole = planner.wanted(host.facts, host.profile, host.stack)
    expected = f"gpu_settings_clocks: {asked}"
    if whole.refused:
        return failed(expected, whole.refused, mendable=not whole.locked)
    told = units(host, whole.units, planner.CLOCKS_UNIT)
    if isinstance(told, Verdict):
        return told
    wrong = [
        *files(host, whole.files, planner.SCRIPT, planner.UNIT_FILE),
        *told,
        *planner.undone(host.facts, whole.settings),
    ]
    notes = tuple(f"GPU {s.index}: {s.unsupported}" for s in whole.settings if s.unsupported)
    if wrong:
        return failed(expected, "; ".join(wrong), evidence=(*wrong, *notes))
    if asked == "none":
        return passed("left to the driver", expected=expected)
    given = [s for s in whole.settings if s.set]
    if not given:
        return skipped(f"{'; '.join(notes)}")
    locked = sum(not s.application for s in given)
    # Honest about what was looked at: no field of nvidia-smi shows a lock.
    how = (
        (f"{locked} GPUs have locked clocks, which cannot be read back: the unit ran, with these values",)
        if locked
        else ()
    )
    values = tuple(
        f"GPU {s.index}: graphics {s.graphics or 'free'}, memory {s.memory or 'free'} MHz" for s in given
    )
    return passed(
        f"set on {len(given)} of {len(whole.settings)} GPUs",
        expected=expected,
        evidence=(*how, *values, *notes),
    )
