"""The forms of nvidia-smi that people read: the table without options, and `-q`."""

from __future__ import annotations

import json
import time
from pathlib import Path

from .document import gpu_document
from .gpu import NA, Gpu
from .nvml import INVALID, Refusal
from .readings import Node, memory
from .xml import cuda_version

LABELS: dict[str, str] = json.loads((Path(__file__).parent / "labels.json").read_text())
"""Element -> what -q calls it; the others are told by their words."""

SECTIONS = {
    "MEMORY": ["fb_memory_usage", "bar1_memory_usage", "cc_protected_memory_usage"],
    "UTILIZATION": ["utilization"],
    "ECC": ["ecc_mode", "ecc_errors"],
    "TEMPERATURE": ["temperature", "supported_gpu_target_temp"],
    "COMPUTE": ["compute_mode"],
    "PAGE_RETIREMENT": ["retired_pages"],
    "POWER": ["power_readings", "gpu_power_readings", "gpu_memory_power_readings", "module_power_readings"],
    "ROW_REMAPPER": ["remapped_rows"],
    "CLOCK": [
        "clocks",
        "applications_clocks",
        "default_applications_clocks",
        "deferred_clocks",
        "max_clocks",
        "max_customer_boost_clocks",
        "clock_policy",
    ],
    "PERFORMANCE": ["performance_state", "clocks_throttle_reasons", "clocks_event_reasons"],
    "SUPPORTED_CLOCKS": ["supported_clocks"],
    "ACCOUNTING": ["accounting_mode", "accounting_mode_buffer_size"],
    "VOLTAGE": ["voltage"],
    "PIDS": ["processes"],
}


def query(all_gpus: list[Gpu], shown: list[Gpu], display: str | None) -> str:
    """`-q`, or with `-d` some sections of it. Raises Refusal for a section that is not known."""
    wanted: set[str] | None = None
    if display:
        wanted = set()
        for name in display.upper().split(","):
            if name not in SECTIONS:
                wrong = f"ERROR: Option --display= is invalid for {display}."
                raise Refusal(f"{wrong} Please run 'nvidia-smi -h' for help.\n", INVALID)
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
    elif name == "retired_pages" and not isinstance(body, str):
        lines.append(f"{indent}{_label(name)}")
        for kind, count in body[:3]:
            text = count if isinstance(count, str) else str(count[0][1])
            lines.append(f"{indent}    {_label(kind):<{width - 4 * depth}}: {text}")
    elif name == "processes":
        lines.append(f"{indent}{'Processes':<{width}}: None")
    elif isinstance(body, str):
        lines.append(f"{indent}{_label(name):<{width - 4 * depth + 4}}: {body or 'None'}")
    else:
        lines.append(f"{indent}{_label(name)}")
        for child in body:
            _print(child, depth + 1, width, lines)


RULE = "+" + "-" * 41 + "+" + "-" * 24 + "+" + "-" * 22 + "+"


def table(all_gpus: list[Gpu], shown: list[Gpu]) -> str:
    """The boxes that nvidia-smi prints without options, laid out as in 550."""
    version, branch = all_gpus[0].version, all_gpus[0].branch
    words = ("KMD Version", "CUDA UMD Version") if branch >= 610 else ("Driver Version", "CUDA Version")
    head = f"NVIDIA-SMI {version:<22} {words[0]}: {version:<14} {words[1]}: {cuda_version(branch)}"
    lines = [
        time.strftime("%a %b %e %H:%M:%S %Y") + "       ",
        "+" + "-" * 89 + "+",
        f"| {head:<87} |",
        f"|{RULE[1:]}",
        "| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |",
        "| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |",
        "|                                         |                        |               MIG M. |",
        f"|{RULE[1:-1].replace('-', '=')}|",
    ]
    for gpu in shown:
        lines += [*_boxes(gpu), RULE]
    lines += [
        " " * 91,
        "+" + "-" * 89 + "+",
        f"| {'Processes:':<87} |",
        f"|  {'GPU   GI   CI        PID   Type   Process name':<75}{'GPU Memory':<11} |",
        f"|  {'      ID   ID':<75}{'Usage':<11} |",
        "|" + "=" * 89 + "|",
        f"|  {'No running processes found':<86} |",
        "+" + "-" * 89 + "+",
    ]
    return "\n".join(lines) + "\n"


def _boxes(gpu: Gpu) -> list[str]:
    """The three lines of a GPU."""
    have, counts, lost = memory(gpu), gpu.ecc_counts(), gpu.fault("lost")
    ecc = (
        "ERR!"
        if lost
        else str(counts["dram_uncorrectable"] + counts["sram_uncorrectable"])
        if gpu.card["ecc"]
        else NA
    )
    fan = "0%" if gpu.card.get("fan") else NA
    state = "P8" if gpu.card["brand"] == "GeForce" else "P0"
    draw, limit = (
        ("ERR!", "ERR!") if lost else (f"{gpu.card['power']['idle']:.0f}W", f"{gpu.power_limit():.0f}W")
    )
    used = "ERR!" if lost else f"{have['used']:>6}MiB / {have['total']:>6}MiB"
    mig = "Disabled" if gpu.can("mig") else NA
    load = f"{'0%':>8} {'Default':>11}"
    on = "On" if gpu.persistence else "Off"
    heat = "ERR!" if lost else f"{gpu.temperature()}C"
    return [
        f"| {gpu.minor:>3}  {gpu.product[:27]:<27}  {on:>4}  |   {gpu.bus_id} Off | {ecc:>20} |",
        f"|{fan:>4}  {heat:>4} {state:>5}            {draw:>4} / {limit:>5} | {used:>22} | {load:>20} |",
        f"|{'':41}|{'':24}| {mig:>20} |",
    ]
