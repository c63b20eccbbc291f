"""The devices on the PCI bus, and which of them are NVIDIA's GPUs and NVSwitches."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .answers import int_of, output, quote, rows, text_of
from .known import Unknown
from .record import record

if TYPE_CHECKING:
    from ..recording.model import Answer

NVIDIA = "10de"
# The kernel's drivers that hold a device for a virtual machine (KVM, Xen, Grace's coherent memory).
_FOR_MACHINES = frozenset({"vfio-pci", "nvgrace-gpu-vfio-pci", "pci-stub", "xen-pciback", "pciback"})


@record
class PciDevice:
    """One function on the bus; ids are hexadecimal without `0x`, `class_` has base and sub class (`0302`).

    `driver` is the kernel driver that owns it, None where none does. `numa_node` is None where the
    firmware names none. `gone` is True where the device no longer answers on the bus,
    `virtual_function` where another device of this host stands behind it.
    """

    address: str
    vendor: str
    device: str
    class_: str
    driver: str | None
    numa_node: int | None
    name: str
    modules: tuple[str, ...] = ()
    gone: bool = False
    virtual_function: bool = False

    @property
    def id(self) -> str:
        """`vendor:device`, the way that lspci and the catalog write it."""
        return f"{self.vendor}:{self.device}"

    @property
    def is_nvidia_gpu(self) -> bool:
        """Display controllers: VGA (0300), 3D (0302) and other (0380); not their audio functions or vGPUs."""
        return self.vendor == NVIDIA and self.class_.startswith("03") and not self.virtual_function

    @property
    def passed_through(self) -> bool:
        """Whether a driver holds it that keeps devices for virtual machines."""
        return (self.driver or "").lower().replace("_", "-") in _FOR_MACHINES

    @property
    def is_nvswitch(self) -> bool:
        """NVSwitches up to Hopper are NVIDIA bridges of class 0680; later ones show as ConnectX."""
        return self.vendor == NVIDIA and self.class_ == "0680"


def bus_id(text: str) -> str | None:
    """One spelling for what tools print: `00000000:A1:00.0`, `GPU0000:A1:00.0`, `0000:a1:00`."""
    found = re.search(
        r"(?:([0-9a-fA-F]{3,8}):)?([0-9a-fA-F]{2}):([0-9a-fA-F]{2})(?:\.([0-7]))?(?![0-9a-fA-F]|:[0-9a-fA-F])",
        text,
    )
    if not found:
        return None
    domain = (found[1] or "0").lstrip("0") or "0"
    return f"{domain.lower():0>4}:{found[2].lower()}:{found[3].lower()}.{found[4] or '0'}"


def devices(sysfs: Answer, lspci: Answer) -> tuple[PciDevice, ...] | Unknown:
    """The bus as /sys shows it, with lspci's names where lspci is there; lspci alone will do too."""
    listed = _from_lspci(lspci)
    found = _from_sysfs(sysfs)
    if isinstance(found, Unknown):
        # Where neither helps, the one that was asked says more.
        return listed if not isinstance(listed, Unknown) or lspci.not_asked is None else found
    if isinstance(listed, Unknown):
        return found
    known = {device.address: device for device in listed}
    return tuple(_with_names(device, known.get(device.address)) for device in found)


def _with_names(device: PciDevice, listed: PciDevice | None) -> PciDevice:
    if listed is None:
        return device
    return replace(
        device, name=listed.name or device.name, modules=listed.modules, gone=device.gone or listed.gone
    )


def _from_sysfs(answer: Answer) -> tuple[PciDevice, ...] | Unknown:
    found = rows(answer, "devices")
    if isinstance(found, Unknown):
        return found
    result = []
    for row in found:
        address = bus_id(text_of(row, "address", "slot", "bus_id") or "")
        ids = [_hex(row, key) for key in ("vendor", "device", "class")]
        if address is None or any(part is None for part in ids):
            return Unknown(
                f"pci: an entry without address, vendor, device or class: {quote(str(row))}", answer.item
            )
        vendor, device, class_ = (part or "" for part in ids)
        class_ = class_.rjust(6, "0") if len(class_) > 4 else class_.rjust(4, "0")
        node = int_of(row, "numa_node")
        result.append(
            PciDevice(
                address,
                vendor.rjust(4, "0"),
                device.rjust(4, "0"),
                class_[:4],
                text_of(row, "driver"),
                node if node is not None and node >= 0 else None,
                text_of(row, "name") or "",
                gone=vendor == "ffff",
                virtual_function=text_of(row, "physical_function") is not None,
            )
        )
    return tuple(result)


def _hex(row: dict[str, Any], key: str) -> str | None:
    text = text_of(row, key) or ""
    digits = text.lower().removeprefix("0x")
    return digits if re.fullmatch(r"[0-9a-f]{1,8}", digits) else None


_LSPCI = re.compile(
    r"(?P<address>[0-9a-f:]+\.[0-7]) (?P<kind>.*?) \[(?P<class>[0-9a-f]{4})\]: (?P<name>.*?) "
    r"\[(?P<vendor>[0-9a-f]{4}):(?P<device>[0-9a-f]{4})\](?P<rest>.*)"
)


def _from_lspci(answer: Answer) -> tuple[PciDevice, ...] | Unknown:
    """`lspci -Dnnk`: one line a device, then indented lines about its driver."""
    text = output(answer)
    if isinstance(text, Unknown):
        return text
    result: list[PciDevice] = []
    for line in text.splitlines():
        if not line.strip():
            continue
        if not line[0].isspace():
            found = _LSPCI.fullmatch(line.rstrip())
            address = bus_id(line)
            if not found or address is None:
                return Unknown(f"lspci: unexpected line: {quote(line)}", answer.item)
            gone = "(rev ff)" in found["rest"]
            name = found["name"]
            result.append(
                PciDevice(
                    address, found["vendor"], found["device"], found["class"], None, None, name, gone=gone
                )
            )
            continue
        key, sign, value = line.strip().partition(":")
        if sign and result and key == "Kernel driver in use":
            result[-1] = replace(result[-1], driver=value.strip())
        elif sign and result and key == "Kernel modules":
            result[-1] = replace(result[-1], modules=tuple(part.strip() for part in value.split(",")))
    if not result:
        return Unknown("lspci: nothing was printed", answer.item)
    return tuple(result)
