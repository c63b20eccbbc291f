"""The forms of nvidia-smi that people read: the table without options, and `-q`."""

from __future__ import annotations

import time

from .document import Node, gpu_document, memory
from .gpu import NA, Gpu
from .nvml import INVALID, Refusal
from .xml import cuda_version

LABELS = {
    "product_name": "Product Name", "product_brand": "Product Brand", "product_architecture": "Product Architecture", "display_mode": "Display Mode",
    "display_attached": "Display Attached", "display_active": "Display Active", "persistence_mode": "Persistence Mode", "addressing_mode": "Addressing Mode",
    "mig_mode": "MIG Mode", "mig_devices": "MIG Devices", "accounting_mode": "Accounting Mode", "accounting_mode_buffer_size": "Accounting Mode Buffer Size",
    "driver_model": "Driver Model", "serial": "Serial Number", "uuid": "GPU UUID", "pdi": "GPU PDI", "minor_number": "Minor Number",
    "vbios_version": "VBIOS Version", "multigpu_board": "MultiGPU Board", "board_id": "Board ID", "board_part_number": "Board Part Number",
    "gpu_part_number": "GPU Part Number", "gpu_fru_part_number": "FRU Part Number", "gpu_module_id": "Module ID", "platformInfo": "Platform Info",
    "inforom_version": "Inforom Version", "img_version": "Image Version", "oem_object": "OEM Object", "ecc_object": "ECC Object",
    "pwr_object": "Power Management Object", "inforom_bbx_flush": "Inforom BBX Object Flush", "latest_timestamp": "Latest Timestamp",
    "latest_duration": "Latest Duration", "gpu_operation_mode": "GPU Operation Mode", "c2c_mode": "GPU C2C Mode", "gsp_firmware_version": "GSP Firmware Version",
    "gpu_virtualization_mode": "GPU Virtualization Mode", "virtualization_mode": "Virtualization Mode", "host_vgpu_mode": "Host VGPU Mode",
    "vgpu_heterogeneous_mode": "vGPU Heterogeneous Mode", "gpu_reset_status": "GPU Reset Status", "reset_required": "Reset Required",
    "drain_and_reset_recommended": "Drain and Reset Recommended", "gpu_recovery_action": "GPU Recovery Action", "ibmnpu": "IBMNPU",
    "relaxed_ordering_mode": "Relaxed Ordering Mode", "pci": "PCI", "pci_bus": "Bus", "pci_device": "Device", "pci_domain": "Domain",
    "pci_base_class": "Base Classcode", "pci_sub_class": "Sub Classcode", "pci_device_id": "Device Id", "pci_bus_id": "Bus Id",
    "pci_sub_system_id": "Sub System Id", "pci_gpu_link_info": "GPU Link Info", "pcie_gen": "PCIe Generation", "max_link_gen": "Max",
    "current_link_gen": "Current", "device_current_link_gen": "Device Current", "max_device_link_gen": "Device Max", "max_host_link_gen": "Host Max",
    "link_widths": "Link Width", "max_link_width": "Max", "current_link_width": "Current", "pci_bridge_chip": "Bridge Chip", "bridge_chip_type": "Type",
    "bridge_chip_fw": "Firmware", "replay_counter": "Replays Since Reset", "replay_rollover_counter": "Replay Number Rollovers",
    "tx_util": "Tx Throughput", "rx_util": "Rx Throughput", "atomic_caps_inbound": "Atomic Caps Inbound", "atomic_caps_outbound": "Atomic Caps Outbound",
    "fan_speed": "Fan Speed", "performance_state": "Performance State", "sparse_operation_mode": "Sparse Operation Mode", "fb_memory_usage": "FB Memory Usage",
    "bar1_memory_usage": "BAR1 Memory Usage", "cc_protected_memory_usage": "Conf Compute Protected Memory Usage", "compute_mode": "Compute Mode",
    "utilization": "Utilization", "encoder_stats": "Encoder Stats", "session_count": "Active Sessions", "average_fps": "Average FPS",
    "average_latency": "Average Latency", "fbc_stats": "FBC Stats", "ecc_mode": "ECC Mode", "ecc_errors": "ECC Errors", "retired_pages": "Retired Pages",
    "multiple_single_bit_retirement": "Single Bit ECC", "double_bit_retirement": "Double Bit ECC", "pending_retirement": "Pending Page Blacklist",
    "remapped_rows": "Remapped Rows", "remapped_row_corr": "Correctable Error", "remapped_row_unc": "Uncorrectable Error",
    "remapped_row_pending": "Pending", "remapped_row_failure": "Remapping Failure Occurred", "row_remapper_histogram": "Bank Remap Availability Histogram",
    "temperature": "Temperature", "gpu_temp": "GPU Current Temp", "gpu_temp_tlimit": "GPU T.Limit Temp", "gpu_temp_max_threshold": "GPU Shutdown Temp",
    "gpu_temp_slow_threshold": "GPU Slowdown Temp", "gpu_temp_max_gpu_threshold": "GPU Max Operating Temp", "gpu_target_temperature": "GPU Target Temperature",
    "memory_temp": "Memory Current Temp", "gpu_temp_max_mem_threshold": "Memory Max Operating Temp", "gpu_temp_max_tlimit_threshold": "GPU Shutdown T.Limit Temp",
    "gpu_temp_slow_tlimit_threshold": "GPU Slowdown T.Limit Temp", "gpu_temp_max_gpu_tlimit_threshold": "GPU Max Operating T.Limit Temp",
    "gpu_temp_max_mem_tlimit_threshold": "Memory Max Operating T.Limit Temp", "power_readings": "Power Readings", "gpu_power_readings": "GPU Power Readings",
    "gpu_memory_power_readings": "GPU Memory Power Readings", "module_power_readings": "Module Power Readings", "power_state": "Performance State",
    "average_power_draw": "Average Power Draw", "instant_power_draw": "Instantaneous Power Draw", "applications_clocks": "Applications Clocks",
    "default_applications_clocks": "Default Applications Clocks", "deferred_clocks": "Deferred Clocks", "max_clocks": "Max Clocks",
    "max_customer_boost_clocks": "Max Customer Boost Clocks", "clock_policy": "Clock Policy", "graphics_clock": "Graphics", "sm_clock": "SM",
    "mem_clock": "Memory", "video_clock": "Video", "voltage": "Voltage", "graphics_volt": "Graphics", "cliqueId": "CliqueId", "clusterUuid": "ClusterUUID",
    "supported_gpu_target_temp": "Supported GPU_TARGET_TEMP",
}  # fmt: skip
"""Element -> what -q calls it; the others are told by their words."""

SECTIONS = {
    "MEMORY": ["fb_memory_usage", "bar1_memory_usage", "cc_protected_memory_usage"], "UTILIZATION": ["utilization"], "ECC": ["ecc_mode", "ecc_errors"],
    "TEMPERATURE": ["temperature", "supported_gpu_target_temp"], "COMPUTE": ["compute_mode"], "PAGE_RETIREMENT": ["retired_pages"],
    "POWER": ["power_readings", "gpu_power_readings", "gpu_memory_power_readings", "module_power_readings"], "ROW_REMAPPER": ["remapped_rows"],
    "CLOCK": ["clocks", "applications_clocks", "default_applications_clocks", "deferred_clocks", "max_clocks", "max_customer_boost_clocks", "clock_policy"],
    "PERFORMANCE": ["performance_state", "clocks_throttle_reasons", "clocks_event_reasons"], "SUPPORTED_CLOCKS": ["supported_clocks"],
    "ACCOUNTING": ["accounting_mode", "accounting_mode_buffer_size"], "VOLTAGE": ["voltage"], "PIDS": ["processes"],
}  # fmt: skip


def query(all_gpus: list[Gpu], shown: list[Gpu], display: str | None) -> str:
    """`-q`, or with `-d` some sections of it. Raises Refusal for a section that is not known."""
    wanted: set[str] | None = None
    if display:
        wanted = set()
        for name in display.upper().split(","):
            if name not in SECTIONS:
                raise Refusal(
                    f"ERROR: Option --display= is invalid for {display}. Please run 'nvidia-smi -h' for help.\n",
                    INVALID,
                )
            wanted |= set(SECTIONS[name])
    branch = all_gpus[0].branch
    width = 54 if branch >= 570 else 38
    head = {
        "Timestamp": time.strftime("%a %b %e %H:%M:%S %Y"),
        "Driver Version": all_gpus[0].version,
        "CUDA Version": cuda_version(branch),
    }
    lines = [
        "",
        "==============NVSMI LOG==============",
        "",
        *(f"{name:<{width + 4}}: {value}" for name, value in head.items()),
        "",
    ]
    lines.append(f"{'Attached GPUs':<{width + 4}}: {len(all_gpus)}")
    for gpu in shown:
        lines.append(f"GPU {gpu.bus_id}")
        for node in gpu_document(gpu):
            if (wanted is None and node[0] not in ("supported_clocks", "accounted_processes")) or (
                wanted is not None and node[0] in wanted
            ):
                _print(node, 1, width, lines)
        lines.append("")
    return "\n".join(lines) + "\n"


def _label(name: str) -> str:
    for prefix in (
        "clocks_throttle_reason_",
        "clocks_event_reason_",
        "row_remapper_histogram_",
        "current_",
        "pending_",
        "incorrect_",
    ):
        if name.startswith(prefix) and name not in LABELS and not name.endswith("_limit"):
            short = name[len(prefix) :]
            if prefix in ("current_", "pending_"):
                return prefix[:-1].title()
            return _words(short)
    return LABELS.get(name) or _words(name)


def _words(name: str) -> str:
    capitals = {
        "gpu": "GPU",
        "sw": "SW",
        "hw": "HW",
        "sram": "SRAM",
        "dram": "DRAM",
        "ecc": "ECC",
        "jpeg": "JPEG",
        "ofa": "OFA",
        "id": "ID",
    }
    return " ".join(capitals.get(word, word.capitalize()) for word in name.replace("_util", "").split("_"))


def _print(node: Node, depth: int, width: int, lines: list[str]) -> None:
    name, body = node
    indent = "    " * depth
    if name == "supported_clocks" and not isinstance(body, str):
        lines.append(f"{indent}Supported Clocks")
        for _, span in body:
            for kind, clock in span if not isinstance(span, str) else ():
                label, deeper = ("Memory", 2) if kind == "value" else ("Graphics", 3)
                lines.append(f"{'    ' * deeper}{label:<{width - 4 * deeper + 4}}: {clock}")
    elif name == "processes":
        lines.append(f"{indent}{'Processes':<{width}}: None")
    elif isinstance(body, str):
        lines.append(f"{indent}{_label(name):<{width - 4 * depth + 4}}: {body or 'None'}")
    else:
        lines.append(f"{indent}{_label(name)}")
        for child in body:
            _print(child, depth + 1, width, lines)


def table(all_gpus: list[Gpu], shown: list[Gpu]) -> str:
    """The boxes that nvidia-smi prints without options (layout of 550; of 535 but for the width of its columns)."""
    first = all_gpus[0]
    cuda = cuda_version(first.branch)
    if first.branch >= 610:
        head = (
            f"| NVIDIA-SMI {first.version:<22} KMD Version: {first.version:<14} CUDA UMD Version: {cuda:<9}|"
        )
    else:
        head = (
            f"| NVIDIA-SMI {first.version:<22} Driver Version: {first.version:<14} CUDA Version: {cuda:<9}|"
        )
    lines = [
        time.strftime("%a %b %e %H:%M:%S %Y") + "       ",
        "+" + "-" * 89 + "+",
        f"{head[:-1]:<90}|",
        "|" + "-" * 41 + "+" + "-" * 24 + "+" + "-" * 22 + "+",
        f"| {'GPU  Name':<27}{'Persistence-M':>12} | {'Bus-Id':<15} Disp.A | {'Volatile Uncorr. ECC':<20} |",
        f"| {'Fan  Temp   Perf':<18}{'Pwr:Usage/Cap':>21} | {'Memory-Usage':>22} | {'GPU-Util  Compute M.':<20} |",
        f"|{'':41}|{'':24}|{'MIG M.':>21} |",
        "|" + "=" * 41 + "+" + "=" * 24 + "+" + "=" * 22 + "|",
    ]
    for gpu in shown:
        have, counts = memory(gpu), gpu.ecc_counts()
        ecc = str(counts["dram_uncorrectable"] + counts["sram_uncorrectable"]) if gpu.card["ecc"] else NA
        fan = "  0%" if gpu.card.get("fan") else " N/A"
        state = "P8" if gpu.card["brand"] == "GeForce" else "P0"
        watts = f"{gpu.card['power']['idle']:.0f}W / {gpu.power_limit():4.0f}W"
        mig = "Disabled" if gpu.can("mig") else NA
        if gpu.fault("lost"):
            watts, ecc = "ERR! / ERR!", "ERR!"
        lines += [
            f"| {gpu.minor:>3}  {gpu.product[:26]:<26}{'On' if gpu.persistence else 'Off':>6}   | {gpu.bus_id} Off |{ecc:>21} |",
            f"|{fan:>4} {gpu.temperature():>4}C {state:>5} {watts:>23} |{have['used']:>7}MiB / {have['total']:>6}MiB |{'0%':>8} {'Default':>12} |",
            f"|{'':41}|{'':24}|{mig:>21} |",
            "+" + "-" * 41 + "+" + "-" * 24 + "+" + "-" * 22 + "+",
        ]
    lines += [
        " " * 91,
        "+" + "-" * 89 + "+",
        f"| {'Processes:':<87} |",
        f"| {' GPU   GI   CI        PID   Type   Process name':<76}{'GPU Memory':>11} |",
        f"| {'       ID   ID':<76}{'Usage':<11} |",
        "|" + "=" * 89 + "|",
        f"| {' No running processes found':<87} |",
        "+" + "-" * 89 + "+",
    ]
    return "\n".join(lines) + "\n"
