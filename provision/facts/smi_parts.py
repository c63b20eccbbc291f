"""The parts of one GPU in nvidia-smi's XML, each under the names that it had over the driver's versions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .known import Maybe, Unknown, Unsupported
from .smi_model import (
    Clocks,
    Ecc,
    EccCounts,
    MigDevice,
    Mode,
    Power,
    Process,
    RemappedRows,
    Throttle,
)
from .smi_xml import decimal, error, first, flag, number, value

if TYPE_CHECKING:
    from collections.abc import Mapping
    from xml.etree.ElementTree import Element


ITEM = "nvidia-smi.query"


def clocks(gpu: Element, name: str) -> Clocks:
    return Clocks(
        *(
            number(value(gpu, f"{name}/{part}", ITEM), ITEM)
            for part in ("graphics_clock", "mem_clock", "sm_clock")
        )
    )


def supported_clocks(gpu: Element) -> Mapping[int, tuple[int, ...]] | Unknown:
    """Graphics clocks by memory clock, both in MHz and in nvidia-smi's order (fastest first)."""
    holder = gpu.find("supported_clocks")
    memories = holder.findall("supported_mem_clock") if holder is not None else []
    if not memories:
        text = value(gpu, "supported_clocks", ITEM)
        return text if isinstance(text, Unknown) else Unknown(f"supported_clocks: {text}", ITEM)
    table: dict[int, tuple[int, ...]] = {}
    for memory in memories:
        clock = number(value(memory, "value", ITEM), ITEM)
        graphics = [number((g.text or "").strip(), ITEM) for g in memory.findall("supported_graphics_clock")]
        known = tuple(g for g in graphics if not isinstance(g, Unknown))
        if isinstance(clock, Unknown) or len(known) != len(graphics):
            return Unknown("supported_clocks holds what is no clock", ITEM)
        table[clock] = known
    return table


def mig_device(device: Element) -> MigDevice:
    return MigDevice(
        *(
            number(value(device, part, ITEM), ITEM)
            for part in ("index", "gpu_instance_id", "fb_memory_usage/total")
        )
    )


def ecc(gpu: Element) -> Ecc:
    def truth(path: str) -> Maybe[bool]:
        return flag(value(gpu, path, ITEM), ITEM)

    return Ecc(
        Mode(truth("ecc_mode/current_ecc"), truth("ecc_mode/pending_ecc")),
        _ecc_counts(gpu, "ecc_errors/volatile"),
        _ecc_counts(gpu, "ecc_errors/aggregate"),
        truth("ecc_errors/channel_repair_pending"),
        truth("ecc_errors/tpc_repair_pending"),
        truth("ecc_errors/unrepairable_memory"),
    )


def _ecc_counts(gpu: Element, path: str) -> EccCounts:
    """Three layouts: single/double bit before Turing, then sram and dram, then sram split by detector."""

    def count(part: str) -> Maybe[int]:
        return number(value(gpu, f"{path}/{part}", ITEM), ITEM)

    if gpu.find(f"{path}/single_bit") is not None:
        none = Unsupported("this GPU does not count SRAM and DRAM apart", ITEM)
        return EccCounts(none, none, count("single_bit/total"), count("double_bit/total"), none)
    uncorrectable = count("sram_uncorrectable")
    if gpu.find(f"{path}/sram_uncorrectable_parity") is not None:
        parity, secded = count("sram_uncorrectable_parity"), count("sram_uncorrectable_secded")
        if isinstance(parity, Unknown):
            uncorrectable = parity
        else:
            uncorrectable = secded if isinstance(secded, Unknown) else parity + secded
    exceeded = flag(value(gpu, f"{path}/sram_threshold_exceeded", ITEM), ITEM)
    return EccCounts(
        count("sram_correctable"),
        uncorrectable,
        count("dram_correctable"),
        count("dram_uncorrectable"),
        exceeded,
    )


def remapped_rows(gpu: Element) -> RemappedRows:
    """Bare text (`N/A`, `GPU is lost`) stands for all four where there are no rows to speak of."""
    holder = gpu.find("remapped_rows")
    if holder is None or len(holder) == 0:
        text = value(gpu, "remapped_rows", ITEM)
        none = text if isinstance(text, Unknown) else Unknown(f"remapped_rows: {text}", ITEM)
        return RemappedRows(none, none, none, none)

    def at(name: str) -> Maybe[str]:
        return value(holder, f"remapped_row_{name}", ITEM)

    return RemappedRows(
        number(at("corr"), ITEM),
        number(at("unc"), ITEM),
        flag(at("pending"), ITEM),
        flag(at("failure"), ITEM),
    )


def recovery_action(gpu: Element) -> str | Unknown:
    """gpu_recovery_action since 570; the reset status of 535 to 565 says the same in two flags."""
    holder = gpu.find("gpu_recovery_action")
    if holder is not None:
        text = " ".join((holder.text or "").split())
        return "None" if text == "None" else value(gpu, "gpu_recovery_action", ITEM)
    required = flag(value(gpu, "gpu_reset_status/reset_required", ITEM), ITEM)
    drain = flag(value(gpu, "gpu_reset_status/drain_and_reset_recommended", ITEM), ITEM)
    if isinstance(required, Unknown):
        return required
    if required:
        return "Reset"
    if isinstance(drain, Unknown):
        return drain
    return "Drain and Reset" if drain else "None"


def health(gpu: Element) -> Mapping[str, str]:
    known: dict[str, str] = {}
    for part in gpu.find("fabric/health") or ():
        text = value(gpu, f"fabric/health/{part.tag}", ITEM)
        if not isinstance(text, Unknown):
            known[part.tag] = text
    return known


def throttle(gpu: Element) -> Throttle | Unknown:
    """clocks_event_reasons, called clocks_throttle_reasons before driver 535."""
    for kind in ("event", "throttle"):
        holder = gpu.find(f"clocks_{kind}_reasons")
        if holder is None:
            continue
        active: set[str] = set()
        for part in holder:
            acts = flag(value(holder, part.tag, ITEM), ITEM)
            if isinstance(acts, Unknown) and not isinstance(acts, Unsupported):
                return acts
            if acts is True:
                active.add(part.tag.removeprefix(f"clocks_{kind}_reason_"))
        if len(holder) == 0:
            text = value(gpu, holder.tag, ITEM)
            return text if isinstance(text, Unknown) else Unknown(f"{holder.tag}: {text}", ITEM)
        return Throttle(frozenset(active), _throttle_counters(gpu))
    return Unsupported("this driver reports no reasons for lowered clocks", ITEM)


def _throttle_counters(gpu: Element) -> Mapping[str, int]:
    counters: dict[str, int] = {}
    for part in gpu.find("clocks_event_reasons_counters") or ():
        spent = number(" ".join((part.text or "").split()), ITEM)
        if not isinstance(spent, Unknown):
            counters[part.tag.removeprefix("clocks_event_reasons_counters_")] = spent
    return counters


def power(gpu: Element) -> Power:
    """gpu_power_readings since 535; `draw` was split into average and instant after that."""
    new, old = "gpu_power_readings", "power_readings"

    def watts(*paths: str) -> Maybe[float]:
        return decimal(first(gpu, ITEM, *paths), ITEM)

    return Power(
        watts(f"{new}/instant_power_draw", f"{new}/power_draw", f"{old}/power_draw"),
        watts(f"{new}/current_power_limit", f"{old}/power_limit"),
        watts(f"{new}/default_power_limit", f"{old}/default_power_limit"),
        watts(f"{new}/min_power_limit", f"{old}/min_power_limit"),
        watts(f"{new}/max_power_limit", f"{old}/max_power_limit"),
    )


def process(process: Element) -> Process:
    return Process(
        number(value(process, "pid", ITEM), ITEM),
        value(process, "process_name", ITEM),
        value(process, "type", ITEM),
        number(value(process, "used_memory", ITEM), ITEM),
    )


def errors(gpu: Element) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for part in gpu.iter():
        text = " ".join((part.text or "").split())
        if error(text):
            found[text.strip("[]")] = None
    return tuple(found)
