"""The fields that `nvidia-smi --query-gpu` knows, and how each reads."""

from __future__ import annotations

import time
from collections.abc import Callable

from .gpu import DEPRECATED, NA, Gpu
from .readings import THROTTLE, application_texts, memory, throttle_states

Value = str | int | float | None
Field = tuple[str, Callable[[Gpu], Value]]

SYNONYMS = {
    "gpu_name": "name",
    "gpu_serial": "serial",
    "gpu_uuid": "uuid",
    "gpu_bus_id": "pci.bus_id",
    "clocks.gr": "clocks.current.graphics",
    "clocks.sm": "clocks.current.sm",
    "clocks.mem": "clocks.current.memory",
    "clocks.video": "clocks.current.video",
    "clocks.applications.gr": "clocks.applications.graphics",
    "clocks.applications.mem": "clocks.applications.memory",
    "clocks.default_applications.gr": "clocks.default_applications.graphics",
    "clocks.default_applications.mem": "clocks.default_applications.memory",
    "clocks.max.gr": "clocks.max.graphics",
    "clocks.max.mem": "clocks.max.memory",
    "inforom.image": "inforom.img",
    "inforom.power": "inforom.pwr",
    "retired_pages.sbe": "retired_pages.single_bit_ecc.count",
    "retired_pages.dbe": "retired_pages.double_bit.count",
    "gpu_operation_mode.current": "gom.current",
    "gpu_operation_mode.pending": "gom.pending",
}
"""Other spellings; the header shows the name on the right."""


ECC_PLACES = (
    "device_memory",
    "dram",
    "register_file",
    "l1_cache",
    "l2_cache",
    "texture_memory",
    "cbu",
    "sram",
    "total",
)


def _mode(mode: tuple[bool, bool] | None, which: int) -> Value:
    return None if mode is None else "Enabled" if mode[which] else "Disabled"


def _ecc(kind: str, where: str) -> Callable[[Gpu], Value]:
    word = "uncorrectable" if kind == "uncorrected" else "correctable"

    def read(gpu: Gpu) -> Value:
        counts = gpu.ecc_counts()
        sram, dram = counts[f"sram_{word}"], counts[f"dram_{word}"]
        places = {"sram": sram, "dram": dram, "device_memory": dram, "total": sram + dram}
        return places.get(where) if gpu.card["ecc"] else None

    return read


def _application(index: int, *, default: bool) -> Callable[[Gpu], Value]:
    def read(gpu: Gpu) -> Value:
        text = application_texts(gpu, default=default)[index]
        return text if text == DEPRECATED else None if text == NA else int(text.split()[0])

    return read


def _clock(clocks: Callable[[Gpu], dict[str, int]], name: str) -> Callable[[Gpu], Value]:
    return lambda gpu: clocks(gpu)[name]


def _throttle(name: str) -> Callable[[Gpu], Value]:
    return lambda gpu: throttle_states(gpu)[name]


def _limits(name: str) -> Callable[[Gpu], Value]:
    return lambda gpu: float(gpu.card["power"][name])


def _same(value: Value) -> Callable[[Gpu], Value]:
    return lambda gpu: value


def known_fields(branch: int) -> dict[str, Field]:
    """Field -> (its unit, how it reads). None reads as [N/A]."""
    f: dict[str, Field] = {
        "timestamp": (
            "",
            lambda gpu: time.strftime("%Y/%m/%d %H:%M:%S.") + f"{int(time.time() * 1000) % 1000:03d}",
        ),
        "driver_version": ("", lambda gpu: gpu.version),
        "count": ("", lambda gpu: len(gpu.state["loaded"]["gpus"])),
        "name": ("", lambda gpu: gpu.product),
        "serial": ("", lambda gpu: None if gpu.card["brand"] == "GeForce" else gpu.gpu["serial"]),
        "uuid": ("", lambda gpu: gpu.gpu["uuid"]),
        "pci.bus_id": ("", lambda gpu: gpu.bus_id),
        "pci.domain": ("", _same("0x0000")),
        "pci.bus": ("", lambda gpu: f"0x{gpu.bus:02X}"),
        "pci.device": ("", lambda gpu: f"0x{gpu.gpu['address'][8:10].upper()}"),
        "pci.device_id": ("", lambda gpu: f"0x{gpu.card['pci']['device'].upper()}10DE"),
        "pci.sub_device_id": (
            "",
            lambda gpu: f"0x{gpu.card['pci']['subdevice']}{gpu.card['pci']['subvendor']}".upper().replace(
                "0X", "0x"
            ),
        ),
        "pcie.link.width.max": ("", lambda gpu: gpu.card["pci"]["width"]),
        "pcie.link.width.current": ("", lambda gpu: gpu.link_width()),
        "index": ("", lambda gpu: gpu.minor),
        "display_mode": ("", lambda gpu: DEPRECATED if gpu.branch >= 580 else "Disabled"),
        "display_active": ("", _same("Disabled")),
        "persistence_mode": ("", lambda gpu: "Enabled" if gpu.persistence else "Disabled"),
        "addressing_mode": ("", lambda gpu: "HMM" if gpu.state["loaded"]["open"] else "None"),
        "accounting.mode": ("", _same("Disabled")),
        "accounting.buffer_size": ("", _same(4000)),
        "vbios_version": ("", lambda gpu: gpu.card["board"]["vbios"]),
        "inforom.img": ("", lambda gpu: gpu.card["board"]["inforom"][0]),
        "inforom.oem": ("", lambda gpu: gpu.card["board"]["inforom"][1]),
        "inforom.ecc": ("", lambda gpu: gpu.card["board"]["inforom"][2]),
        "fan.speed": ("%", lambda gpu: 0 if gpu.card.get("fan") else None),
        "pstate": ("", lambda gpu: "P8" if gpu.card["brand"] == "GeForce" else "P0"),
        "memory.total": ("MiB", lambda gpu: memory(gpu)["total"]),
        "memory.reserved": ("MiB", lambda gpu: memory(gpu)["reserved"]),
        "memory.used": ("MiB", lambda gpu: memory(gpu)["used"]),
        "memory.free": ("MiB", lambda gpu: memory(gpu)["free"]),
        "compute_mode": ("", lambda gpu: gpu.compute_mode()),
        "compute_cap": ("", lambda gpu: gpu.card["compute_capability"]),
        "ecc.mode.current": ("", lambda gpu: _mode(gpu.ecc_mode(), 0)),
        "ecc.mode.pending": ("", lambda gpu: _mode(gpu.ecc_mode(), 1)),
        "retired_pages.single_bit_ecc.count": ("", lambda gpu: 0 if gpu.card.get("retired_pages") else None),
        "retired_pages.double_bit.count": ("", lambda gpu: 0 if gpu.card.get("retired_pages") else None),
        "retired_pages.pending": ("", lambda gpu: "No" if gpu.card.get("retired_pages") else None),
        "temperature.gpu": ("", lambda gpu: gpu.temperature()),
        "temperature.memory": ("", lambda gpu: gpu.card["temperature"]["memory"]),
        "power.management": ("", lambda gpu: DEPRECATED if gpu.branch >= 590 else "Enabled"),
        "power.draw": ("W", _limits("idle")),
        "power.draw.average": ("W", _limits("idle")),
        "power.draw.instant": ("W", _limits("idle")),
        "power.limit": ("W", lambda gpu: gpu.power_limit()),
        "enforced.power.limit": ("W", lambda gpu: gpu.power_limit()),
        "power.default_limit": ("W", _limits("default")),
        "power.min_limit": ("W", _limits("min")),
        "power.max_limit": ("W", _limits("max")),
        "mig.mode.current": ("", lambda gpu: _mode(gpu.mig_mode(), 0)),
        "mig.mode.pending": ("", lambda gpu: _mode(gpu.mig_mode(), 1)),
        "gsp.mode.current": ("", lambda gpu: "Enabled" if gpu.state["loaded"]["open"] else "Disabled"),
        "gsp.mode.default": ("", lambda gpu: "Enabled" if gpu.state["loaded"]["open"] else "Disabled"),
        "fabric.state": ("", lambda gpu: gpu.fabric()[0] if gpu.fabric()[0] != NA else None),
        "fabric.status": ("", lambda gpu: gpu.fabric()[1] if gpu.fabric()[1] != NA else None),
        "reset_status.reset_required": ("", lambda gpu: DEPRECATED if gpu.branch >= 570 else "No"),
        "reset_status.drain_and_reset_recommended": (
            "",
            lambda gpu: DEPRECATED if gpu.branch >= 570 else "No",
        ),
    }
    for name in (
        "driver_model.current",
        "driver_model.pending",
        "inforom.pwr",
        "gom.current",
        "gom.pending",
        "c2c.mode",
        "temperature.gpu.tlimit",
    ):
        f[name] = ("", _same(None))
    for name in ("current", "max", "gpucurrent", "gpumax", "hostmax"):
        f[f"pcie.link.gen.{name}"] = ("", lambda gpu: gpu.card["pci"]["gen"])
    for name in ("graphics", "sm", "memory", "video"):
        f[f"clocks.current.{name}"] = ("MHz", _clock(Gpu.current_clocks, name))
    for name in ("graphics", "sm", "memory"):
        f[f"clocks.max.{name}"] = ("MHz", _clock(Gpu.max_clocks, name))
    for index, name in enumerate(("graphics", "memory")):
        f[f"clocks.applications.{name}"] = ("MHz", _application(index, default=False))
        f[f"clocks.default_applications.{name}"] = ("MHz", _application(index, default=True))
    for name in ("gpu", "memory", "encoder", "decoder", "jpeg", "ofa"):
        f[f"utilization.{name}"] = ("%", _same(0))
    for name in ("sessionCount", "averageFps", "averageLatency"):
        f[f"encoder.stats.{name}"] = ("", _same(0))
    for word in ("clocks_event_reasons", "clocks_throttle_reasons"):
        f[f"{word}.supported"] = ("", _same("0x00000000000001FF"))
        f[f"{word}.active"] = ("", lambda gpu: f"0x{0x68 if gpu.throttled() else 1:016X}")
        for name in THROTTLE:
            f[f"{word}.{name}"] = ("", _throttle(name))
    for kind in ("corrected", "uncorrected"):
        for span in ("volatile", "aggregate"):
            for where in ECC_PLACES:
                f[f"ecc.errors.{kind}.{span}.{where}"] = ("", _ecc(kind, where))
    if branch >= 570:
        f["gpu_recovery_action"] = ("", Gpu.recovery_action)
    return f


GROUPS = {
    "clocks.applications": ["clocks.applications.graphics", "clocks.applications.memory"],
    "clocks.max": ["clocks.max.graphics", "clocks.max.sm", "clocks.max.memory"],
    "mig.mode": ["mig.mode.current", "mig.mode.pending"],
    "ecc.mode": ["ecc.mode.current", "ecc.mode.pending"],
    "inforom": ["inforom.img", "inforom.oem", "inforom.ecc", "inforom.pwr"],
    "retired_pages": [
        "retired_pages.single_bit_ecc.count",
        "retired_pages.double_bit.count",
        "retired_pages.pending",
    ],
    "fabric": ["fabric.state", "fabric.status"],
}
"""Names that stand for several fields."""
