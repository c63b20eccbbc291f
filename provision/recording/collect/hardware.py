"""The machine: PCI bus, processors, firmware."""

import glob
import os
import re

from .asking import ask, program
from .reading import as_json, link, names, number, peek

MYPY = False
if MYPY:
    from typing import Any, Dict


def pci() -> "Dict[str, Any]":
    """Devices from /sys: minimal images have no lspci."""
    root = "/sys/bus/pci/devices"
    if not os.path.isdir(root):
        return {"missing": True}
    found = []
    for address in names(root):
        at = os.path.join(root, address)
        row = {
            "address": address,
            "driver": link(at + "/driver"),
            "numa_node": number(peek(at + "/numa_node")),
        }
        for key, source in (
            ("vendor", "vendor"),
            ("device", "device"),
            ("class", "class"),
            ("subsystem_vendor", "subsystem_vendor"),
            ("subsystem_device", "subsystem_device"),
            ("revision", "revision"),
        ):
            text = peek(at + "/" + source)
            row[key] = text[2:] if text and text.startswith("0x") else text
        for key in ("current_link_speed", "current_link_width", "max_link_speed", "max_link_width"):
            row[key] = peek(at + "/" + key)
        row["iommu_group"] = link(at + "/iommu_group")
        row["physical_function"] = link(at + "/physfn")
        found.append(row)
    return as_json(found)


def cpu() -> "Dict[str, Any]":
    governors: "Dict[str, int]" = {}
    base = "/sys/devices/system/cpu"
    for path in glob.glob(base + "/cpu[0-9]*/cpufreq/scaling_governor"):
        name = peek(path) or "unknown"
        governors[name] = governors.get(name, 0) + 1
    information = peek("/proc/cpuinfo") or ""
    model = re.search(r"(?m)^(?:model name|Model|cpu)\s*:\s*(.+)$", information)
    nodes = []
    for path in glob.glob("/sys/devices/system/node/node[0-9]*"):
        memory = re.search(r"MemTotal:\s+(\d+) kB", peek(path + "/meminfo") or "")
        nodes.append(
            {
                "node": int(re.sub(r"\D", "", os.path.basename(path))),
                "cpus": peek(path + "/cpulist"),
                "memory_kb": int(memory.group(1)) if memory else None,
                "distance": peek(path + "/distance"),
            }
        )
    cores = {peek(path) for path in glob.glob(base + "/cpu[0-9]*/topology/thread_siblings_list")}
    first = base + "/cpu0/cpufreq/"
    return as_json(
        {
            "model": model.group(1).strip() if model else None,
            "count": os.cpu_count(),
            "online": peek(base + "/online"),
            "sockets": len(set(re.findall(r"(?m)^physical id\s*:\s*(\d+)", information))) or None,
            "smt": peek(base + "/smt/active"),
            "cores": sorted(core for core in cores if core),
            "governors": governors,
            "scaling_driver": peek(first + "scaling_driver"),
            "available_governors": (peek(first + "scaling_available_governors") or "").split(),
            "energy_preference": peek(first + "energy_performance_preference"),
            "idle_driver": peek(base + "/cpuidle/current_driver"),
            "idle_latency": number(peek(base + "/cpu0/power/pm_qos_resume_latency_us")),
            "nodes": sorted(nodes, key=lambda row: row["node"]),
        }
    )


def secure_boot() -> "Dict[str, Any]":
    """mokutil's answer; where it is not installed, the same from the firmware's own variable (UEFI 3.3)."""
    if program("mokutil"):
        return ask(["mokutil", "--sb-state"])
    if not os.path.isdir("/sys/firmware/efi"):
        return {"rc": 255, "stdout": "", "stderr": "EFI variables are not supported on this system\n"}
    found = glob.glob("/sys/firmware/efi/efivars/SecureBoot-*")
    if not found:
        return {"missing": True}
    with open(found[0], "rb") as variable:
        data = variable.read(16)
    on = len(data) == 5 and data[4] == 1
    return {"rc": 0, "stdout": "SecureBoot %s\n" % ("enabled" if on else "disabled"), "stderr": ""}


def dmi() -> "Dict[str, Any]":
    """Vendor and product of the machine; no serial numbers."""
    keys = (
        "sys_vendor",
        "product_name",
        "product_version",
        "board_vendor",
        "board_name",
        "bios_vendor",
        "bios_version",
        "bios_date",
        "chassis_asset_tag",
    )
    return as_json({key: peek("/sys/class/dmi/id/" + key) for key in keys})
