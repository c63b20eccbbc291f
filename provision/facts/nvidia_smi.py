"""`nvidia-smi -q -x`, from driver 418 to 620.

Elements were renamed over the versions (power_readings, clocks_throttle_reasons, gpu_reset_status,
driver_version); the newest name is looked for first. NVIDIA's nvidia-smi(1) calls the format "not
guaranteed to be backwards compatible", so an element that is missing is unknown, never an error.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .answers import plain, quote, words
from .known import Maybe, Unknown, Unsupported
from .pci import bus_id
from .smi_model import (
    Clocks,
    Ecc,
    EccCounts,
    Fabric,
    Gpu,
    Mig,
    MigDevice,
    Mode,
    PcieLink,
    Power,
    Process,
    RemappedRows,
    RetiredPages,
    SmiReport,
    Temperature,
    Throttle,
)
from .smi_xml import Refused, decimal, error, first, flag, number, tree, value
from .versions import driver_version

if TYPE_CHECKING:
    from collections.abc import Mapping
    from xml.etree.ElementTree import Element

    from ..recording.model import Answer

ITEM = "nvidia-smi.query"
_END = "</nvidia_smi_log>"


def report(answer: Answer) -> SmiReport | Unknown:
    """All that the answer holds; where it holds no whole document, Unknown in nvidia-smi's own words.

    nvidia-smi prints warnings before and after the document and ends with a status of its own for
    them (14: an inforom is corrupt), so the document decides and not the status.
    """
    if answer.silence is not None:
        return Unknown(answer.silence, ITEM)
    if answer.cut:
        return Unknown(f"{ITEM} was cut at the collector's limit", ITEM)
    text = plain(answer.text)
    start = min((at for at in (text.find("<?xml"), text.find("<nvidia_smi_log")) if at >= 0), default=-1)
    end = text.rfind(_END)
    if start < 0:
        return Unknown(quote(words(answer)) or "nvidia-smi printed nothing", ITEM)
    if end < 0:
        return Unknown("the XML of nvidia-smi is not complete: it has no end", ITEM)
    try:
        root = tree(text[start : end + len(_END)])
    except Refused as e:
        return Unknown(f"the XML of nvidia-smi cannot be read: {e}", ITEM)
    around = (text[:start], text[end + len(_END) :], plain(answer.stderr))
    notes = [line.strip() for part in around for line in part.splitlines() if line.strip()]
    if answer.rc:
        notes.append(f"nvidia-smi ended with status {answer.rc}")
    return _report(root, tuple(notes))


def _report(root: Element, notes: tuple[str, ...]) -> SmiReport | Unknown:
    gpus: list[Gpu] = []
    for index, element in enumerate(root.findall("gpu")):
        gpu = _gpu(index, element)
        if isinstance(gpu, Unknown):
            return gpu
        gpus.append(gpu)
    return SmiReport(
        driver_version=_version(first(root, ITEM, "kmd_version", "driver_version")),
        cuda_version=_version(first(root, ITEM, "cuda_umd_version", "cuda_version")),
        attached=number(value(root, "attached_gpus", ITEM), ITEM),
        gpus=tuple(gpus),
        notes=notes,
    )


def _version(text: str | Unknown) -> str | Unknown:
    """The number alone: from driver 610 on, prose about its deprecation follows."""
    if isinstance(text, Unknown):
        return text
    found = driver_version(text) or (re.match(r"\d{1,3}\.\d{1,3}(?![\d.])", text) or [None])[0]
    return found if found else Unknown(f"no version: {text}", ITEM)


def _gpu(index: int, element: Element) -> Gpu | Unknown:
    address = bus_id(element.get("id", "")) or bus_id(element.findtext("pci/pci_bus_id") or "")
    if address is None:
        return Unknown(f"GPU {index} of the XML has no bus id", ITEM)

    def at(*paths: str) -> Maybe[str]:
        return first(element, ITEM, *paths)

    def count(*paths: str) -> Maybe[int]:
        return number(at(*paths), ITEM)

    def truth(*paths: str) -> Maybe[bool]:
        return flag(at(*paths), ITEM)

    return Gpu(
        index=index,
        name=at("product_name"),
        uuid=at("uuid"),
        serial=at("serial"),
        bus_id=address,
        pci_id=_pci_id(at("pci/pci_device_id")),
        subsystem_id=_pci_id(at("pci/pci_sub_system_id")),
        architecture=at("product_architecture"),
        minor=count("minor_number"),
        module_id=count("platformInfo/module_id", "gpu_module_id"),
        vbios=at("vbios_version"),
        gsp_firmware=at("gsp_firmware_version"),
        virtualization=at("gpu_virtualization_mode/virtualization_mode"),
        addressing_mode=at("addressing_mode"),
        compute_mode=at("compute_mode"),
        performance_state=at("performance_state"),
        persistence=truth("persistence_mode"),
        memory_mib=count("fb_memory_usage/total"),
        memory_used_mib=count("fb_memory_usage/used"),
        utilization=count("utilization/gpu_util"),
        clocks=_clocks(element, "clocks"),
        application_clocks=_clocks(element, "applications_clocks"),
        default_application_clocks=_clocks(element, "default_applications_clocks"),
        max_clocks=_clocks(element, "max_clocks"),
        supported_clocks=_supported_clocks(element),
        mig=Mig(
            Mode(truth("mig_mode/current_mig"), truth("mig_mode/pending_mig")),
            tuple(_mig_device(device) for device in element.findall("mig_devices/mig_device")),
        ),
        ecc=_ecc(element),
        retired_pages=RetiredPages(
            count("retired_pages/multiple_single_bit_retirement/retired_count"),
            count("retired_pages/double_bit_retirement/retired_count"),
            truth("retired_pages/pending_retirement"),
        ),
        remapped_rows=_remapped_rows(element),
        recovery_action=_recovery_action(element),
        fabric=Fabric(
            at("fabric/state"),
            at("fabric/status"),
            at("fabric/cliqueId"),
            at("fabric/clusterUuid"),
            _health(element),
        ),
        throttle=_throttle(element),
        pcie=PcieLink(
            count("pci/pci_gpu_link_info/pcie_gen/current_link_gen"),
            count("pci/pci_gpu_link_info/pcie_gen/max_link_gen"),
            count("pci/pci_gpu_link_info/pcie_gen/max_device_link_gen"),
            count("pci/pci_gpu_link_info/link_widths/current_link_width"),
            count("pci/pci_gpu_link_info/link_widths/max_link_width"),
            count("pci/replay_counter"),
        ),
        temperature=Temperature(
            count("temperature/gpu_temp"),
            count("temperature/memory_temp"),
            count("temperature/gpu_temp_slow_threshold"),
            count("temperature/gpu_temp_tlimit"),
        ),
        power=_power(element),
        processes=tuple(_process(p) for p in element.findall("processes/process_info")),
        errors=_errors(element),
    )


def _pci_id(text: str | Unknown) -> str | Unknown:
    """`20B010DE` is device 20b0 of vendor 10de."""
    if isinstance(text, Unknown):
        return text
    found = re.fullmatch(r"(?:0x)?([0-9A-Fa-f]{4})([0-9A-Fa-f]{4})", text)
    return f"{found[2]}:{found[1]}".lower() if found else Unknown(f"no PCI id: {text}", ITEM)


def _clocks(gpu: Element, name: str) -> Clocks:
    return Clocks(
        *(
            number(value(gpu, f"{name}/{part}", ITEM), ITEM)
            for part in ("graphics_clock", "mem_clock", "sm_clock")
        )
    )


def _supported_clocks(gpu: Element) -> Mapping[int, tuple[int, ...]] | Unknown:
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


def _mig_device(device: Element) -> MigDevice:
    return MigDevice(
        *(
            number(value(device, part, ITEM), ITEM)
            for part in ("index", "gpu_instance_id", "fb_memory_usage/total")
        )
    )


def _ecc(gpu: Element) -> Ecc:
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


def _remapped_rows(gpu: Element) -> RemappedRows:
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


def _recovery_action(gpu: Element) -> str | Unknown:
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


def _health(gpu: Element) -> Mapping[str, str]:
    known: dict[str, str] = {}
    for part in gpu.find("fabric/health") or ():
        text = value(gpu, f"fabric/health/{part.tag}", ITEM)
        if not isinstance(text, Unknown):
            known[part.tag] = text
    return known


def _throttle(gpu: Element) -> Throttle | Unknown:
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


def _power(gpu: Element) -> Power:
    """gpu_power_readings since 535; `draw` was split into average and instant after that."""
    new, old = "gpu_power_readings", "power_readings"

    def watts(*paths: str) -> Maybe[float]:
        return decimal(first(gpu, ITEM, *paths), ITEM)

    return Power(
        watts(f"{new}/instant_power_draw", f"{new}/power_draw", f"{old}/power_draw"),
        watts(f"{new}/current_power_limit", f"{old}/power_limit"),
        watts(f"{new}/default_power_limit", f"{old}/default_power_limit"),
        watts(f"{new}/max_power_limit", f"{old}/max_power_limit"),
    )


def _process(process: Element) -> Process:
    return Process(
        number(value(process, "pid", ITEM), ITEM),
        value(process, "process_name", ITEM),
        value(process, "type", ITEM),
        number(value(process, "used_memory", ITEM), ITEM),
    )


def _errors(gpu: Element) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for part in gpu.iter():
        text = " ".join((part.text or "").split())
        if error(text):
            found[text.strip("[]")] = None
    return tuple(found)
