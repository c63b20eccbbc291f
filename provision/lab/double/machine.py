"""From the GPUs asked for to a whole machine: addresses, identities, NUMA nodes, NVLinks, NICs. Plain data,
kept as JSON in the host.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

from .host.world import MARK
from .models import find, platforms

if TYPE_CHECKING:
    from .spec import GpuSpec

Device = dict[str, Any]

ROOT_PORT = {
    "vendor": "1022",
    "device": "1483",
    "class": "060400",
    "label": "AMD Starship/Matisse GPP Bridge",
}
HOST_BRIDGE = {
    "vendor": "1022",
    "device": "1480",
    "class": "060000",
    "label": "AMD Starship/Matisse Root Complex",
}
SWITCH = {"vendor": "1000", "device": "c030", "class": "060400", "label": "Broadcom PCIe switch"}
NVME = {
    "vendor": "144d",
    "device": "a80a",
    "class": "010802",
    "label": "Samsung NVMe SSD Controller PM9A1",
    "driver": "nvme",
}
ETHERNET = {
    "vendor": "8086",
    "device": "1563",
    "class": "020000",
    "label": "Intel Ethernet Controller X550",
    "driver": "ixgbe",
}


def build(spec: GpuSpec, seed: str) -> dict[str, Any]:
    """The machine of `spec`. The same seed gives the same UUIDs and serial numbers, so that they last over
    reboots.

    Keys: `says` (that it is a double), `gpus` and `nics` (in PCI order), `devices` (every PCI device with the
    bridges above it), `links` (NVLinks between GPUs i and j), `models`.
    """
    cards = [find(name) for name in spec.models]
    platform = platforms()[cards[0]["platform"] if cards else "pcie"]
    slots = [("gpu", slot) for slot in platform["gpus"][: len(cards)]]
    bridges = {slot[1] for _, slot in slots}
    nics = platform.get("nics", {"slots": []})
    slots += [("nic", slot) for slot in nics["slots"] if slot[1] in bridges]
    switches = platform.get("nvswitches", {"count": 0})
    if switches["count"] and len(cards) > platform["nvlink"]["direct_up_to"]:
        slots += [("nvswitch", [0, "nvswitch", 0, port]) for port in range(switches["count"])]
    slots += [("ethernet", [0, "io", None, 0]), ("nvme", [0, "io", None, 1])]
    devices, placed = _place(slots, platform["sockets"])
    gpus = [
        _gpu(index, card, device, seed)
        for index, (card, device) in enumerate(zip(cards, placed["gpu"], strict=True))
    ]
    for device in placed["nvswitch"]:
        device.update(
            vendor="10de",
            device=switches["device"],
            subvendor="10de",
            subdevice=switches["subdevice"],
            label=switches["label"],
        )
        device["class"] = "068000"
    found_nics = [_nic(index, device, nics, seed) for index, device in enumerate(placed["nic"])]
    for device, is_a in [(placed["ethernet"][0], ETHERNET), (placed["nvme"][0], NVME)]:
        device.update(is_a)
    return {
        "says": MARK,
        "models": {card["name"]: _model(card) for card in cards},
        "gpus": gpus,
        "nics": found_nics,
        "devices": devices,
        "links": _links(platform.get("nvlink"), cards),
    }


def _model(card: dict[str, Any]) -> dict[str, Any]:
    """A card as JSON can hold it: memory clocks from high to low, each with its range of graphics clocks in
    MHz.
    """
    clocks = card["clocks"]
    ranges = [{"memory": memory, **span} for memory, span in sorted(clocks["memory"].items(), reverse=True)]
    return card | {"clocks": clocks | {"memory": ranges}}


def _place(
    slots: list[tuple[str, list[Any]]], sockets: list[str]
) -> tuple[list[Device], dict[str, list[Device]]]:
    """Give every slot an address below bridges that stand to each other as the slots say. Buses are numbered
    as they are met.
    """
    devices: list[Device] = []
    placed: dict[str, list[Device]] = {"gpu": [], "nic": [], "nvswitch": [], "ethernet": [], "nvme": []}
    bus = 0

    def add(address: str, above: list[str], numa: int, slot: list[Any], is_a: Device | None = None) -> Device:
        device: Device = {
            "address": address,
            "path": [*above, address],
            "numa": numa,
            "cpus": sockets[numa],
            "slot": slot,
        } | (is_a or {})
        devices.append(device)
        return device

    for host_bridge in dict.fromkeys(slot[1] for _, slot in slots):
        members = [(kind, slot) for kind, slot in slots if slot[1] == host_bridge]
        top, numa, ports = bus, members[0][1][0], 0
        root = f"pci0000:{top:02x}"
        add(f"0000:{top:02x}:00.0", [root], numa, [numa, host_bridge, None, None], HOST_BRIDGE)
        for switch in dict.fromkeys(slot[2] for _, slot in members):
            under = [(kind, slot) for kind, slot in members if slot[2] == switch]
            for group in [under] if switch is not None else [[each] for each in under]:
                ports += 1
                bus += 1
                above = [root, f"0000:{top:02x}:{ports:02x}.1"]
                add(
                    above[-1],
                    above[:-1],
                    numa,
                    [numa, host_bridge, None, None],
                    ROOT_PORT | {"secondary": bus},
                )
                if switch is not None:
                    add(
                        f"0000:{bus:02x}:00.0",
                        above,
                        numa,
                        [numa, host_bridge, switch, None],
                        SWITCH | {"secondary": bus + 1},
                    )
                    above = [*above, f"0000:{bus:02x}:00.0"]
                    bus += 1
                inner = bus
                by_port = dict.fromkeys(slot[3] for _, slot in group)
                for number, port in enumerate(by_port):
                    at = [each for each in group if each[1][3] == port]
                    below = above
                    if switch is not None:
                        bus += 1
                        below = [*above, f"0000:{inner:02x}:{number:02x}.0"]
                        add(
                            below[-1],
                            above,
                            numa,
                            [numa, host_bridge, switch, port],
                            SWITCH | {"secondary": bus},
                        )
                    for function, (kind, slot) in enumerate(at):
                        placed[kind].append(add(f"0000:{bus:02x}:{function:02x}.0", below, numa, slot))
        bus = (bus // 8 + 1) * 8
    for order, device in enumerate(devices):
        device["order"] = order
        if "secondary" in device:
            below_it = [each for each in devices if device["address"] in each["path"][:-1]]
            device["subordinate"] = max(int(each["address"][5:7], 16) for each in below_it)
    return devices, placed


def _gpu(index: int, card: dict[str, Any], device: Device, seed: str) -> dict[str, Any]:
    pci = card["pci"]
    device.update(
        vendor="10de",
        device=pci["device"],
        subvendor=pci["subvendor"],
        subdevice=pci["subdevice"],
        label=pci["label"],
    )
    device.update({"class": pci["class"] + "00", "gen": pci["gen"], "width": pci["width"], "gpu": index})
    own = uuid.uuid5(uuid.NAMESPACE_URL, f"gpu-double/{seed}/{index}")
    return {
        "index": index,
        "model": card["name"],
        "address": device["address"],
        "numa": device["numa"],
        "cpus": device["cpus"],
        "slot": device["slot"],
        # d0b1e: as near to "double" as hexadecimal digits come.
        "uuid": "GPU-d0b1e" + str(own)[5:],
        "serial": f"DOUBLE{own.int % 10**7:07d}",
        "pdi": f"0xd0b1e{own.int % 16**11:011x}",
    }


def _nic(index: int, device: Device, nics: dict[str, Any], seed: str) -> dict[str, Any]:
    device.update(
        vendor="15b3",
        device=nics["device"],
        subvendor="15b3",
        subdevice="0041",
        label=nics["label"],
        driver="mlx5_core",
    )
    device["class"] = "020700"
    guid = uuid.uuid5(uuid.NAMESPACE_URL, f"gpu-double/{seed}/nic{index}").hex[:12]
    return {
        "name": f"mlx5_{index}",
        "address": device["address"],
        "numa": device["numa"],
        "slot": device["slot"],
        "rate": nics["rate"],
        "guid": ":".join(["d0b1", guid[:4], guid[4:8], guid[8:12]]),
    }


def _links(nvlink: dict[str, Any] | None, cards: list[dict[str, Any]]) -> list[list[int]]:
    """How many NVLinks join GPU i and GPU j. Cards of different models are never joined."""
    count = len(cards)
    links = [[0] * count for _ in range(count)]
    if nvlink is None:
        return links
    for i in range(count):
        for j in range(count):
            if i == j or cards[i]["name"] != cards[j]["name"] or "nvlink" not in cards[i]:
                continue
            if nvlink["kind"] == "matrix":
                links[i][j] = nvlink["matrix"][i][j]
            elif nvlink["kind"] == "pairs":
                links[i][j] = cards[i]["nvlink"]["links"] if i // 2 == j // 2 else 0
            else:
                links[i][j] = (
                    nvlink["direct_links"] if count <= nvlink["direct_up_to"] else cards[i]["nvlink"]["links"]
                )
    return links
