"""Controls of GPU health by the vendor's own signals: recovery action, memory, what the driver lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..facts.cards_out import left_out, lost
from ..facts.kernel_log import Refusal
from ..facts.known import Unknown
from ..facts.smi_trouble import DriverSilence, SmiTrouble
from .gpu import what_to_do
from .model import Disrupts, Judged, Severity, Verdict, control, failed, passed, skipped, unknown, warned
from .reading import called, gpus, read, shared_kernel, table

if TYPE_CHECKING:
    from ..facts.smi_model import Gpu

_LOST = (
    "Reboot. If it comes back lost, look at power, cooling, seating and riser; take the host out of service "
    "and upgrade no driver on it until then."
)
# nvidia-smi(1): infoROM is the card's own storage of its configuration and error history.
# What of a card that the driver leaves out is a matter of the machine, and not of the driver.
_HARDWARE = (Refusal.NO_POWER, Refusal.NO_ADDRESS_SPACE)
_INFOROM = "infoROM is corrupted"


@control(
    "gpu.health",
    "Every GPU is fit for work by the vendor's own signals",
    severity=Severity.HIGH,
    disrupts=Disrupts.REBOOT,
    needs=("gpu.answers",),
)
def health(host: Judged) -> Verdict:
    expected = "no GPU lost, waiting for a reset, or worn out"
    gone = lost(host.facts)
    given = gpus(host)
    signs = [] if isinstance(given, Verdict) else [sign for gpu in given for sign in _signs(gpu)]
    smi = host.facts.smi
    notes = [] if isinstance(smi, Unknown) else [note for note in smi.notes if _INFOROM in note]
    refused = {bus: why for bus, why in left_out(host.facts).items() if why in _HARDWARE}
    bare = [f"{bus}: {why}" for bus, why in refused.items()]
    told = [*gone, *bare, *signs, *notes]
    if told:
        advice = _LOST if gone else "Drain the GPU; the control of each signal says what it asks for."
        if bare and not gone:
            advice = what_to_do(refused.values())
        return failed(expected, "; ".join(told[:4]), advice=advice, evidence=(*told, *_power_cycle(host)))
    cycle = _power_cycle(host)
    if cycle:
        return failed(
            expected,
            "the GPU's own firmware (GSP) does not start",
            advice="Switch the machine off and on at the mains, then look at firmware and BIOS versions; "
            "installing the driver again is unlikely to help.",
            evidence=cycle,
        )
    if isinstance(given, Verdict):
        return given
    actions = read(given, lambda gpu: gpu.recovery_action)
    if actions.unclear is not None:
        return unknown(actions.unclear)
    return passed(f"{len(given)} GPUs", expected=expected)


def _signs(gpu: Gpu) -> list[str]:
    told = []
    if isinstance(gpu.recovery_action, str) and gpu.recovery_action != "None":
        told.append(f"the driver asks for: {gpu.recovery_action}")
    if any("requires reset" in error.lower() for error in gpu.errors):
        told.append("GPU requires reset")
    if gpu.remapped_rows.failure is True:
        told.append("no spare rows are left")
    if gpu.ecc.unrepairable_memory is True:
        told.append("its memory cannot be repaired")
    heat, limit, margin = gpu.temperature.gpu, gpu.temperature.slowdown, gpu.temperature.margin
    if isinstance(heat, int) and isinstance(limit, int) and heat >= limit:
        told.append(f"{heat} C, and it slows down at {limit} C")
    elif isinstance(margin, int) and margin <= 0:
        told.append(f"{margin} C from the temperature where it slows down")
    return [f"{called(gpu)}: {text}" for text in told]


def _power_cycle(host: Judged) -> tuple[str, ...]:
    """Lines of the kernel's log about firmware that did not start (open-gpu-kernel-modules issue 1104)."""
    log = host.facts.kernel_log
    if isinstance(log, Unknown) or shared_kernel(host) is not None:
        return ()
    why = host.facts.driver_silence
    if isinstance(why, Unknown) or (isinstance(why, DriverSilence) and why.trouble is SmiTrouble.NO_DEVICES):
        return log.gsp_failures[:6]
    return ()


@control(
    "gpu.recovery-action",
    "The driver asks for no recovery of a GPU",
    severity=Severity.HIGH,
    disrupts=Disrupts.REBOOT,
    needs=("gpu.answers",),
)
def recovery_action(host: Judged) -> Verdict:
    given = gpus(host)
    if isinstance(given, Verdict):
        return given
    actions = read(given, lambda gpu: gpu.recovery_action)
    asked = actions.bad(lambda action: action != "None")
    if asked:
        known = table("health")["recovery_actions"]
        advice = dict.fromkeys(known.get(action, "Look it up in nvidia-smi(1).") for _, action in asked)
        return failed(
            "None",
            "; ".join(f"{called(gpu)}: {action}" for gpu, action in asked),
            advice=" ".join(advice),
        )
    return actions.wanting or passed(f"None, on {len(actions.known)} GPUs", expected="None")


@control(
    "gpu.ecc",
    "No uncorrectable memory error since the driver was loaded",
    severity=Severity.HIGH,
    disrupts=Disrupts.REBOOT,
    needs=("gpu.answers",),
)
def ecc(host: Judged) -> Verdict:
    given = gpus(host)
    if isinstance(given, Verdict):
        return given
    expected = "0 uncorrectable errors"
    bad = [text for gpu in given for text in _memory_faults(gpu)]
    if bad:
        return failed(
            expected,
            "; ".join(bad[:4]),
            advice="Stop what runs there, drain and reset the GPU or reboot; a card whose SRAM passed its "
            "threshold, or whose errors come back, is to be replaced (NVIDIA's RMA guidance).",
            evidence=tuple(bad),
        )
    modes = read(given, lambda gpu: gpu.ecc.mode.current)
    if modes.wanting is not None:
        return modes.wanting
    on = tuple(gpu for gpu, is_on in modes.known if is_on)
    later = [gpu for gpu in given if _differ(gpu.ecc.mode.current, gpu.ecc.mode.pending)]
    if later:
        names = ", ".join(called(gpu) for gpu in later)
        return warned("one ECC mode now and after a reboot", f"{names}: it changes at the next reboot")
    if not on:
        return skipped(f"ECC is switched off on {len(given)} GPUs: memory errors are not seen")
    for count in (lambda g: g.ecc.volatile.dram_uncorrectable, lambda g: g.ecc.volatile.sram_uncorrectable):
        counts = read(on, count)
        if counts.unclear is not None:
            return unknown(counts.unclear)
    lifetime = read(on, lambda gpu: gpu.ecc.aggregate.dram_uncorrectable).bad(lambda n: n > 0)
    told = tuple(f"{called(gpu)}: {n} in its life, which row remapping answers" for gpu, n in lifetime)
    return passed(f"none on {len(on)} GPUs", expected=expected, evidence=told)


def _memory_faults(gpu: Gpu) -> list[str]:
    now = gpu.ecc.volatile
    told = [
        f"{called(gpu)}: {count} uncorrectable errors in {kind}"
        for kind, count in (("DRAM", now.dram_uncorrectable), ("SRAM", now.sram_uncorrectable))
        if isinstance(count, int) and count > 0
    ]
    if True in (gpu.ecc.aggregate.sram_threshold_exceeded, now.sram_threshold_exceeded):
        told.append(f"{called(gpu)}: SRAM errors passed their threshold")
    if gpu.ecc.unrepairable_memory is True:
        told.append(f"{called(gpu)}: memory that cannot be repaired")
    told += [
        f"{called(gpu)}: {kind} repair waits for a reset"
        for kind, waits in (("channel", gpu.ecc.channel_repair_pending), ("TPC", gpu.ecc.tpc_repair_pending))
        if waits is True
    ]
    return told


def _differ(now: object, later: object) -> bool:
    return isinstance(now, bool) and isinstance(later, bool) and now is not later


@control(
    "gpu.remapped-rows",
    "No row of memory waits to be replaced, and spare ones are left",
    severity=Severity.HIGH,
    disrupts=Disrupts.REBOOT,
    needs=("gpu.answers",),
)
def remapped_rows(host: Judged) -> Verdict:
    given = gpus(host)
    if isinstance(given, Verdict):
        return given
    limit = int(table("health")["retired_pages_limit"]["pages"])
    bad = [text for gpu in given for text in _rows(gpu, limit)]
    if bad:
        return failed(
            "nothing pending, nothing failed",
            "; ".join(bad[:4]),
            advice="Pending: drain, then reset the GPU or reboot. Failed or past the limit: replace it.",
            evidence=tuple(bad),
        )
    failures = read(given, lambda g: g.remapped_rows.failure)
    pending = read(given, lambda g: g.remapped_rows.pending)
    pages = read(given, lambda g: g.retired_pages.pending)
    for reading in (failures, pending, pages):
        if reading.unclear is not None:
            return unknown(reading.unclear)
    if not pending.known and not pages.known:
        return skipped("these cards neither remap rows nor retire pages")
    done = tuple(
        f"{called(gpu)}: {corr} rows replaced for correctable, {unc} for uncorrectable errors"
        for gpu in given
        if isinstance(corr := gpu.remapped_rows.correctable, int)
        and isinstance(unc := gpu.remapped_rows.uncorrectable, int)
        and corr + unc
    )
    return passed(f"nothing pending on {len(given)} GPUs", evidence=done)


def _rows(gpu: Gpu, limit: int) -> list[str]:
    told = []
    if gpu.remapped_rows.failure is True:
        told.append("a row could not be replaced")
    if gpu.remapped_rows.pending is True:
        told.append("rows wait for a reset")
    if gpu.retired_pages.pending is True:
        told.append("pages wait for a reboot")
    counts = [n for n in (gpu.retired_pages.single_bit, gpu.retired_pages.double_bit) if isinstance(n, int)]
    if sum(counts) >= limit:
        told.append(f"{sum(counts)} pages retired, of {limit} that a card may")
    return [f"{called(gpu)}: {text}" for text in told]
