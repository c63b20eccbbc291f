"""`nvidia-smi -q -x`, from driver 418 to 620.

Elements were renamed over the versions (power_readings, clocks_throttle_reasons, gpu_reset_status,
driver_version); the newest name is looked for first. NVIDIA's nvidia-smi(1) calls the format "not
guaranteed to be backwards compatible", so an element that is missing is unknown, never an error.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from . import smi_parts as parts
from .answers import plain, quote, words
from .known import Maybe, Unknown
from .pci import bus_id
from .smi_model import (
    Fabric,
    Gpu,
    Mig,
    Mode,
    PcieLink,
    RetiredPages,
    SmiReport,
    Temperature,
)
from .smi_parts import ITEM
from .smi_xml import Refused, first, flag, number, tree, value
from .versions import driver_version

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

    from ..recording.model import Answer


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
        clocks=parts.clocks(element, "clocks"),
        application_clocks=parts.clocks(element, "applications_clocks"),
        default_application_clocks=parts.clocks(element, "default_applications_clocks"),
        max_clocks=parts.clocks(element, "max_clocks"),
        supported_clocks=parts.supported_clocks(element),
        mig=Mig(
            Mode(truth("mig_mode/current_mig"), truth("mig_mode/pending_mig")),
            tuple(parts.mig_device(device) for device in element.findall("mig_devices/mig_device")),
        ),
        ecc=parts.ecc(element),
        retired_pages=RetiredPages(
            count("retired_pages/multiple_single_bit_retirement/retired_count"),
            count("retired_pages/double_bit_retirement/retired_count"),
            truth("retired_pages/pending_retirement"),
        ),
        remapped_rows=parts.remapped_rows(element),
        recovery_action=parts.recovery_action(element),
        fabric=Fabric(
            at("fabric/state"),
            at("fabric/status"),
            at("fabric/cliqueId"),
            at("fabric/clusterUuid"),
            parts.health(element),
        ),
        throttle=parts.throttle(element),
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
        power=parts.power(element),
        processes=tuple(parts.process(p) for p in element.findall("processes/process_info")),
        errors=parts.errors(element),
    )


def _pci_id(text: str | Unknown) -> str | Unknown:
    """`20B010DE` is device 20b0 of vendor 10de."""
    if isinstance(text, Unknown):
        return text
    found = re.fullmatch(r"(?:0x)?([0-9A-Fa-f]{4})([0-9A-Fa-f]{4})", text)
    return f"{found[2]}:{found[1]}".lower() if found else Unknown(f"no PCI id: {text}", ITEM)
