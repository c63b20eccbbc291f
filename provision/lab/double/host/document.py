"""Everything `nvidia-smi -q` says of the GPUs, as a tree that the XML and the plain form are both printed
from.

Which elements there are, and in which order, follows the driver's branch: read in public captures of 418,
515, 525, 535, 570, 580 and 595 and in the DTD that nvidia-smi 535 and 550 carry. Between those the older form
stands.
"""

from __future__ import annotations

from .gpu import DEPRECATED, LOST, NA, Gpu
from .readings import (
    Node,
    clocks_section,
    ecc_section,
    fabric_section,
    memory_section,
    only_if,
    pci_section,
    power_section,
    remapped_section,
    retired_section,
    supported_section,
    temperature_section,
    throttle_section,
    utilization_section,
)


def gpu_document(gpu: Gpu) -> list[Node]:
    """The children of one `gpu` element."""
    b = gpu.branch
    card, board = gpu.card, gpu.card["board"]
    geforce = card["brand"] == "GeForce"
    inforom = [text if text is not None else NA for text in board["inforom"]]
    mig, ecc = _both(gpu.mig_mode()), _both(gpu.ecc_mode())
    # The DTD of 535.261 has what a capture of 535.54 lacks.
    late_535 = b >= 550 or (b == 535 and int(gpu.version.split(".")[1]) >= 261)
    nodes: list[Node] = [("product_name", gpu.product), ("product_brand", card["brand"])]
    nodes += only_if(b >= 510, ("product_architecture", card["architecture"]))
    nodes += [("display_mode", DEPRECATED if b >= 580 else "Disabled" if geforce or b < 525 else "Enabled")]
    nodes += only_if(b >= 580, ("display_attached", "No" if geforce else "Yes"))
    nodes += [("display_active", "Disabled"), ("persistence_mode", _enabled(gpu.persistence))]
    nodes += only_if(b >= 535, ("addressing_mode", "HMM" if gpu.state["loaded"]["open"] else "None"))
    nodes += (
        [("mig_mode", [("current_mig", mig[0]), ("pending_mig", mig[1])]), ("mig_devices", "None")]
        if b >= 450
        else []
    )
    nodes += [("accounting_mode", "Disabled"), ("accounting_mode_buffer_size", "4000")]
    nodes += [("driver_model", [("current_dm", NA), ("pending_dm", NA)])]
    nodes += [("serial", NA if geforce else gpu.gpu["serial"]), ("uuid", gpu.gpu["uuid"])]
    nodes += only_if(b >= 580, ("pdi", gpu.gpu["pdi"]))
    nodes += [
        ("minor_number", str(gpu.minor)),
        ("vbios_version", board["vbios"]),
        ("multigpu_board", "No"),
        ("board_id", f"0x{gpu.bus << 8:x}"),
    ]
    nodes += only_if(b >= 525, ("board_part_number", NA if geforce else "GPU-DOUBLE"))
    nodes += [("gpu_part_number", board["gpu_part"])]
    nodes += only_if(b >= 535, ("gpu_fru_part_number", NA))
    module_id = str(gpu.index + 1)
    if b >= 570:
        names = (
            "chassis_serial_number",
            "slot_number",
            "tray_index",
            "host_id",
            "peer_type",
            "module_id",
            "gpu_fabric_guid",
        )
        nodes += [("platformInfo", [(name, module_id if name == "module_id" else NA) for name in names])]
    else:
        nodes += only_if(b >= 510, ("gpu_module_id", module_id))
    nodes += [
        (
            "inforom_version",
            [
                ("img_version", inforom[0]),
                ("oem_object", inforom[1]),
                ("ecc_object", inforom[2]),
                ("pwr_object", NA),
            ],
        )
    ]
    nodes += only_if(late_535, ("inforom_bbx_flush", [("latest_timestamp", NA), ("latest_duration", NA)]))
    nodes += [("gpu_operation_mode", [("current_gom", NA), ("pending_gom", NA)])]
    nodes += only_if(b >= 550, ("c2c_mode", NA))
    gsp: Node = ("gsp_firmware_version", gpu.version if gpu.state["loaded"]["open"] else NA)
    nodes += only_if(510 <= b < 550, gsp)
    virtual: list[Node] = [
        ("virtualization_mode", "None"),
        *only_if(b >= 450, ("host_vgpu_mode", NA)),
        *only_if(b >= 550, ("vgpu_heterogeneous_mode", NA)),
    ]
    nodes += [("gpu_virtualization_mode", virtual)]
    reset = DEPRECATED if b >= 570 else "No"
    nodes += only_if(
        535 <= b < 580,
        ("gpu_reset_status", [("reset_required", reset), ("drain_and_reset_recommended", reset)]),
    )
    nodes += only_if(b >= 570, ("gpu_recovery_action", gpu.recovery_action()))
    nodes += only_if(b >= 550, gsp)
    nodes += [
        ("ibmnpu", [("relaxed_ordering_mode", NA)]),
        ("pci", pci_section(gpu)),
        ("fan_speed", "0 %" if card.get("fan") else NA),
    ]
    nodes += [("performance_state", "P8" if geforce else "P0"), *throttle_section(gpu)]
    nodes += only_if(late_535, ("sparse_operation_mode", NA))
    nodes += memory_section(gpu)
    nodes += [("compute_mode", gpu.compute_mode()), ("utilization", utilization_section(gpu))]
    for stats in ("encoder_stats", "fbc_stats"):
        nodes += [(stats, [("session_count", "0"), ("average_fps", "0"), ("average_latency", "0")])]
    nodes += only_if(
        b >= 570, ("dram_encryption_mode", [("current_dram_encryption", NA), ("pending_dram_encryption", NA)])
    )
    nodes += [
        ("ecc_mode", [("current_ecc", ecc[0]), ("pending_ecc", ecc[1])]),
        ("ecc_errors", ecc_section(gpu)),
        ("retired_pages", retired_section(gpu)),
    ]
    nodes += only_if(b >= 450, ("remapped_rows", remapped_section(gpu)))
    nodes += temperature_section(gpu)
    nodes += power_section(gpu)
    nodes += clocks_section(gpu)
    nodes += only_if(510 <= b < 580, ("voltage", [("graphics_volt", NA)]))
    nodes += only_if(b >= 525, ("fabric", fabric_section(gpu)))
    nodes += [("supported_clocks", supported_section(gpu)), ("processes", []), ("accounted_processes", [])]
    nodes += only_if(b >= 570, ("capabilities", [("egm", "disabled")]))
    return _lost(nodes) if gpu.fault("lost") else nodes


def _enabled(on: bool) -> str:
    return "Enabled" if on else "Disabled"


def _both(mode: tuple[bool, bool] | None) -> tuple[str, str]:
    """A mode now and after the next reset or reboot."""
    return (NA, NA) if mode is None else (_enabled(mode[0]), _enabled(mode[1]))


LOST_READINGS = frozenset(
    {
        "fb_memory_usage",
        "utilization",
        "ecc_errors",
        "remapped_rows",
        "temperature",
        "gpu_power_readings",
        "power_readings",
        "clocks",
        "fabric",
    }
)
"""What a lost GPU no longer reads (public capture of a mock NVML under nvidia-smi 580.65.06)."""


def _lost(nodes: list[Node]) -> list[Node]:
    def blank(node: Node) -> Node:
        name, body = node
        return (name, LOST) if isinstance(body, str) else (name, [blank(child) for child in body])

    return [
        ("remapped_rows", LOST)
        if node[0] == "remapped_rows"
        else blank(node)
        if node[0] in LOST_READINGS
        else node
        for node in nodes
    ]
