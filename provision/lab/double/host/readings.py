"""The sections of `nvidia-smi -q` that hold readings: bus, memory, errors, heat, power, clocks, fabric."""

from __future__ import annotations

from .gpu import DEPRECATED, NA, Gpu

Node = tuple[str, str | list["Node"]]
"""(element, text) or (element, children)."""

THROTTLE = (
    "gpu_idle",
    "applications_clocks_setting",
    "sw_power_cap",
    "hw_slowdown",
    "hw_thermal_slowdown",
    "hw_power_brake_slowdown",
    "sync_boost",
    "sw_thermal_slowdown",
    "display_clocks_setting",
)


def only_if(holds: bool, node: Node) -> list[Node]:
    return [node] if holds else []


def pci_section(gpu: Gpu) -> list[Node]:
    b, pci = gpu.branch, gpu.card["pci"]
    gen, width = str(pci["gen"]), f"{pci['width']}x"
    generation: list[Node] = [("max_link_gen", gen), ("current_link_gen", gen)]
    if b >= 525:
        generation += [
            ("device_current_link_gen", gen),
            ("max_device_link_gen", gen),
            ("max_host_link_gen", gen),
        ]
    nodes: list[Node] = [
        ("pci_bus", f"{gpu.bus:02X}"),
        ("pci_device", gpu.gpu["address"][8:10].upper()),
        ("pci_domain", "0000"),
    ]
    nodes += [("pci_base_class", pci["class"][1]), ("pci_sub_class", pci["class"][3])] if b >= 550 else []
    nodes += [("pci_device_id", f"{pci['device'].upper()}10DE"), ("pci_bus_id", gpu.bus_id)]
    nodes += [("pci_sub_system_id", f"{pci['subdevice']}{pci['subvendor']}".upper())]
    widths: list[Node] = [("max_link_width", width), ("current_link_width", f"{gpu.link_width()}x")]
    nodes += [("pci_gpu_link_info", [("pcie_gen", generation), ("link_widths", widths)])]
    nodes += [("pci_bridge_chip", [("bridge_chip_type", NA), ("bridge_chip_fw", NA)])]
    nodes += [
        ("replay_counter", "0"),
        ("replay_rollover_counter", "0"),
        ("tx_util", "0 KB/s"),
        ("rx_util", "0 KB/s"),
    ]
    caps: list[Node] = [("atomic_caps_inbound", NA), ("atomic_caps_outbound", NA)]
    return nodes + (caps[::-1] if b >= 570 else caps if b >= 525 else [])


def throttle_states(gpu: Gpu) -> dict[str, str]:
    active = (
        {"gpu_idle"} if not gpu.throttled() else {"hw_slowdown", "hw_thermal_slowdown", "sw_thermal_slowdown"}
    )
    return {name: "Active" if name in active else "Not Active" for name in THROTTLE}


def throttle_section(gpu: Gpu) -> list[Node]:
    word = "event" if gpu.branch >= 530 else "throttle"
    reasons: list[Node] = [
        (f"clocks_{word}_reason_{name}", text) for name, text in throttle_states(gpu).items()
    ]
    nodes: list[Node] = [(f"clocks_{word}_reasons", reasons)]
    if gpu.branch >= 580:
        names = ("sw_power_cap", "sync_boost", "sw_therm_slowdown", "hw_therm_slowdown", "hw_power_brake")
        nodes += [
            (
                "clocks_event_reasons_counters",
                [(f"clocks_event_reasons_counters_{name}", "0 us") for name in names],
            )
        ]
    return nodes


def memory(gpu: Gpu) -> dict[str, int]:
    """MiB in all, kept by the driver, used and free."""
    have = gpu.card["memory"]
    reserved = have["reserved"] if gpu.branch >= 510 else 0
    return {"total": have["total"], "reserved": reserved, "used": 0, "free": have["total"] - reserved}


def memory_section(gpu: Gpu) -> list[Node]:
    have, bar1 = memory(gpu), gpu.card["memory"]["bar1"]
    names = ("total", "reserved", "used", "free") if gpu.branch >= 510 else ("total", "used", "free")
    nodes: list[Node] = [("fb_memory_usage", [(name, f"{have[name]} MiB") for name in names])]
    nodes += [
        ("bar1_memory_usage", [("total", f"{bar1} MiB"), ("used", "1 MiB"), ("free", f"{bar1 - 1} MiB")])
    ]
    protected: list[Node] = [(name, "0 MiB") for name in ("total", "used", "free")]
    return nodes + only_if(gpu.branch >= 535, ("cc_protected_memory_usage", protected))


def utilization_section(gpu: Gpu) -> list[Node]:
    names = ["gpu", "memory", "encoder", "decoder"] + (["jpeg", "ofa"] if gpu.branch >= 535 else [])
    return [(f"{name}_util", "0 %") for name in names]


def ecc_section(gpu: Gpu) -> list[Node]:
    b, has = gpu.branch, gpu.card["ecc"]
    counts = {name: str(count) if has else NA for name, count in gpu.ecc_counts().items()}
    if gpu.card["architecture"] == "Volta":
        names = (
            "device_memory",
            "register_file",
            "l1_cache",
            "l2_cache",
            "texture_memory",
            "texture_shm",
            "cbu",
            "total",
        )
        single: list[Node] = [(name, NA if name in ("texture_shm", "cbu") else "0") for name in names]
        bad = counts["dram_uncorrectable"]
        double: list[Node] = [
            (name, NA if name == "texture_shm" else bad if name in ("device_memory", "total") else "0")
            for name in names
        ]
        return [
            (kind, [("single_bit", single), ("double_bit", double)]) for kind in ("volatile", "aggregate")
        ]
    each: list[Node] = [("sram_correctable", counts["sram_correctable"])]
    if b >= 550:
        each += [
            ("sram_uncorrectable_parity", counts["sram_uncorrectable"]),
            ("sram_uncorrectable_secded", counts["sram_uncorrectable"]),
        ]
    else:
        each += [("sram_uncorrectable", counts["sram_uncorrectable"])]
    each += [
        ("dram_correctable", counts["dram_correctable"]),
        ("dram_uncorrectable", counts["dram_uncorrectable"]),
    ]
    nodes: list[Node] = [
        ("volatile", each),
        ("aggregate", each + only_if(b >= 550, ("sram_threshold_exceeded", "No" if has else NA))),
    ]
    if b >= 550:
        sources = ("sram_l2", "sram_sm", "sram_microcontroller", "sram_pcie", "sram_other")
        nodes += [("aggregate_uncorrectable_sram_sources", [(name, "0" if has else NA) for name in sources])]
    if b >= 580:
        nodes += [("channel_repair_pending", "No"), ("tpc_repair_pending", "No")]
    return nodes + only_if(b >= 595, ("unrepairable_memory", NA))


def retired_section(gpu: Gpu) -> list[Node]:
    counted = gpu.card.get("retired_pages")
    count: list[Node] = [
        ("retired_count", "0" if counted else NA),
        ("retired_pagelist", "" if counted else NA),
    ]
    flag = "No" if counted else NA
    return [
        ("multiple_single_bit_retirement", count),
        ("double_bit_retirement", count),
        ("pending_blacklist", flag),
        ("pending_retirement", flag),
    ]


def remapped_section(gpu: Gpu) -> str | list[Node]:
    rows = gpu.remapped()
    if rows is None:
        return NA
    inactive = gpu.branch >= 595
    nodes: list[Node] = [
        ("remapped_row_corr", rows["correctable"]),
        *only_if(inactive, ("remapped_row_corr_inactive", "0")),
    ]
    nodes += [
        ("remapped_row_unc", rows["uncorrectable"]),
        *only_if(inactive, ("remapped_row_unc_inactive", "0")),
    ]
    nodes += [("remapped_row_pending", rows["pending"]), ("remapped_row_failure", rows["failure"])]
    used = int(rows["uncorrectable"])
    banks = {"max": gpu.card["remap_banks"] - used, "high": used, "partial": 0, "low": 0, "none": 0}
    return [
        *nodes,
        (
            "row_remapper_histogram",
            [(f"row_remapper_histogram_{name}", f"{count} bank(s)") for name, count in banks.items()],
        ),
    ]


def temperature_section(gpu: Gpu) -> list[Node]:
    has, now = gpu.card["temperature"], gpu.temperature()
    target = has.get("target") or (None, None, None)
    nodes: list[Node] = [("gpu_temp", f"{now} C")]
    tlimit = has.get("tlimit") if gpu.branch >= 550 else None
    if gpu.branch >= 525:
        nodes += [("gpu_temp_tlimit", _c(has["tlimit"][0] - (now - has["now"])) if tlimit else NA)]
    limits = tlimit[1:] if tlimit else (has.get("shutdown", 95), has.get("slowdown", 92), has.get("max", 87))
    word = "tlimit_threshold" if tlimit else "threshold"
    nodes += [
        (f"gpu_temp_{name}_{word}", _c(limit))
        for name, limit in zip(("max", "slow", "max_gpu"), limits, strict=True)
    ]
    nodes += [("gpu_target_temperature", _c(target[0])), ("memory_temp", _c(has["memory"]))]
    nodes += [(f"gpu_temp_max_mem_{word}", _c(0 if tlimit and has["memory"] else has.get("memory_max")))]
    return [
        ("temperature", nodes),
        (
            "supported_gpu_target_temp",
            [("gpu_target_temp_min", _c(target[1])), ("gpu_target_temp_max", _c(target[2]))],
        ),
    ]


def _c(degrees: int | None) -> str:
    return NA if degrees is None else f"{degrees} C"


def power_section(gpu: Gpu) -> list[Node]:
    b, has = gpu.branch, gpu.card["power"]
    draw, limit, default = f"{has['idle']:.2f} W", f"{gpu.power_limit():.2f} W", f"{has['default']:.2f} W"
    least, most = f"{has['min']:.2f} W", f"{has['max']:.2f} W"
    state = DEPRECATED if b >= 590 else "P8" if gpu.card["brand"] == "GeForce" else "P0"
    if b < 535:
        names = (
            "power_state",
            "power_management",
            "power_draw",
            "power_limit",
            "default_power_limit",
            "enforced_power_limit",
            "min_power_limit",
            "max_power_limit",
        )
        texts = (state, "Supported", draw, limit, default, limit, least, most)
        return [("power_readings", list(zip(names, texts, strict=True)))]
    draws = ("power_draw",) if b < 545 else ("average_power_draw", "instant_power_draw")
    limits = (
        "current_power_limit",
        "requested_power_limit",
        "default_power_limit",
        "min_power_limit",
        "max_power_limit",
    )
    own: list[Node] = [
        ("power_state", state),
        *((name, draw) for name in draws),
        *zip(limits, (limit, limit, default, least, most), strict=True),
    ]
    module: list[Node] = [("power_state", state), *((name, NA) for name in (*draws, *limits))]
    nodes: list[Node] = [("gpu_power_readings", own)]
    of_memory = f"{has['memory']:.2f} W" if "memory" in has else NA
    nodes += only_if(
        b >= 550,
        ("gpu_memory_power_readings", [("average_power_draw", of_memory), ("instant_power_draw", NA)]),
    )
    nodes += [("module_power_readings", module)]
    if b >= 570:
        nodes += [("power_smoothing", NA)]
        nodes += [
            (
                "power_profiles",
                [("power_profile_requested_profiles", NA), ("power_profile_enforced_profiles", NA)],
            )
        ]
    return nodes + only_if(b >= 595, ("edpp_multiplier", NA))


def application_texts(gpu: Gpu, *, default: bool) -> tuple[str, str]:
    """(graphics, memory) of the application clocks, with their unit, or why there are none."""
    clocks = gpu.application_clocks(default=default)
    if gpu.application_clocks_deprecated:
        return DEPRECATED, DEPRECATED
    return (NA, NA) if clocks is None else (f"{clocks[1]} MHz", f"{clocks[0]} MHz")


def clocks_section(gpu: Gpu) -> list[Node]:
    names = (("graphics", "graphics"), ("sm", "sm"), ("mem", "memory"), ("video", "video"))
    now, most = gpu.current_clocks(), gpu.max_clocks()
    nodes: list[Node] = [("clocks", [(f"{short}_clock", f"{now[name]} MHz") for short, name in names])]
    for element, default in (("applications_clocks", False), ("default_applications_clocks", True)):
        graphics, mem = application_texts(gpu, default=default)
        nodes += [(element, [("graphics_clock", graphics), ("mem_clock", mem)])]
    nodes += only_if(gpu.branch >= 525, ("deferred_clocks", [("mem_clock", NA)]))
    nodes += [("max_clocks", [(f"{short}_clock", f"{most[name]} MHz") for short, name in names])]
    boost = NA if gpu.card["brand"] == "GeForce" else f"{most['graphics']} MHz"
    nodes += [("max_customer_boost_clocks", [("graphics_clock", boost)])]
    return [*nodes, ("clock_policy", [("auto_boost", NA), ("auto_boost_default", NA)])]


def fabric_section(gpu: Gpu) -> list[Node]:
    b = gpu.branch
    state, status = gpu.fabric()
    up = state == "Completed"
    nodes: list[Node] = [("state", state), ("status", status)]
    if b >= 550:
        clique, cluster = ("0", "00000000-0000-0000-0000-000000000000") if up else (NA, NA)
        nodes += [("cliqueId", clique), ("clusterUuid", cluster)]
        names = [*(["summary"] if b >= 580 else []), "bandwidth"]
        names += (
            ["route_recovery_in_progress", "route_unhealthy", "access_timeout_recovery"] if b >= 570 else []
        )
        names += ["incorrect_configuration"] if b >= 580 else []
        names += ["partition_assigned"] if b >= 595 else []
        nodes += [("health", [(name, NA) for name in names])]
    return nodes


def supported_section(gpu: Gpu) -> list[Node]:
    return [
        (
            "supported_mem_clock",
            [
                ("value", f"{span['memory']} MHz"),
                *(
                    ("supported_graphics_clock", f"{each} MHz")
                    for each in gpu.graphics_clocks(span["memory"])
                ),
            ],
        )
        for span in gpu.memory_clocks
    ]
