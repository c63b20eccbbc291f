"""Interfaces, RDMA ports and listening sockets."""

import os
import re
import socket
import struct

from .packages import owning_packages
from .reading import as_json, link, names, number, peek, processes

MYPY = False
if MYPY:
    from typing import Any, Dict, Tuple


def rdma() -> "Dict[str, Any]":
    """One entry a port below /sys/class/infiniband."""
    root, found = "/sys/class/infiniband", []
    for device in names(root):
        at = os.path.join(root, device)
        management = None
        try:
            with open(at + "/device/vpd", "rb") as vpd:
                management = b"SW_MNG" in vpd.read(4096)
        except OSError:
            pass
        for port in names(at + "/ports"):
            here = os.path.join(at, "ports", port)
            gids = []
            for index in sorted(names(here + "/gids"), key=lambda text: int(text) if text.isdigit() else 0)[
                :64
            ]:
                gid = peek(here + "/gids/" + index)
                if gid and gid.replace(":", "").strip("0"):
                    gids.append(
                        {
                            "index": int(index),
                            "gid": gid,
                            "type": peek(here + "/gid_attrs/types/" + index),
                            "netdev": peek(here + "/gid_attrs/ndevs/" + index),
                        }
                    )
            found.append(
                {
                    "device": device,
                    "port": int(port),
                    "state": peek(here + "/state"),
                    "physical_state": peek(here + "/phys_state"),
                    "rate": peek(here + "/rate"),
                    "link_layer": peek(here + "/link_layer"),
                    "lid": peek(here + "/lid"),
                    "gids": gids,
                    "node_type": peek(at + "/node_type"),
                    "board_id": peek(at + "/board_id"),
                    "firmware": peek(at + "/fw_ver"),
                    "hca_type": peek(at + "/hca_type"),
                    "pci": link(at + "/device"),
                    "numa_node": number(peek(at + "/device/numa_node")),
                    "physical_function": link(at + "/device/physfn"),
                    "netdevs": names(at + "/device/net"),
                    "switch_management": management,
                }
            )
    return as_json(found)


def net() -> "Dict[str, Any]":
    """What /sys knows of each interface beyond `ip`: speed in Mbit/s, PCI device, driver."""
    found = []
    for name in names("/sys/class/net"):
        at = "/sys/class/net/" + name
        if not os.path.isdir(at):
            continue
        speed = number(peek(at + "/speed"))
        found.append(
            {
                "name": name,
                "speed": speed if speed and speed > 0 else None,
                "duplex": peek(at + "/duplex"),
                "operstate": peek(at + "/operstate"),
                "carrier": peek(at + "/carrier"),
                "type": peek(at + "/type"),
                "pci": link(at + "/device"),
                "driver": link(at + "/device/driver"),
                "numa_node": number(peek(at + "/device/numa_node")),
                "physical_function": link(at + "/device/physfn"),
                "master": link(at + "/master"),
                "virtual": "/virtual/" in os.path.realpath(at),
            }
        )
    return as_json(found)


def _address(text: str) -> "Tuple[str, int]":
    """An address of /proc/net/{tcp,udp}*: 32-bit words in the machine's byte order, then the port."""
    host, port = text.split(":")
    words = [int(host[i : i + 8], 16) for i in range(0, len(host), 8)]
    family = socket.AF_INET if len(words) == 1 else socket.AF_INET6
    return socket.inet_ntop(family, struct.pack("=%dI" % len(words), *words)), int(port, 16)


def sockets() -> "Dict[str, Any]":
    """Listening sockets with their owners. From /proc: `ss` would load the kernel's diag modules."""
    wanted = []
    for protocol, listening in (("tcp", "0A"), ("tcp6", "0A"), ("udp", "07"), ("udp6", "07")):
        for line in (peek("/proc/net/" + protocol) or "").splitlines()[1:]:
            part = line.split()
            if part[3] == listening:
                address, port = _address(part[1])
                wanted.append(
                    {
                        "proto": protocol[:3],
                        "family": 6 if protocol.endswith("6") else 4,
                        "address": address,
                        "port": port,
                        "uid": int(part[7]),
                        "inode": part[9],
                        "pid": None,
                        "program": None,
                        "unit": None,
                        "package": None,
                    }
                )
    owner: "Dict[str, int]" = {}
    inodes = {row["inode"] for row in wanted}
    for pid, _, _ in processes():
        folder = "/proc/%d/fd" % pid
        for name in names(folder):
            try:
                target = os.readlink(folder + "/" + name)
            except OSError:
                continue
            if target.startswith("socket:[") and target[8:-1] in inodes:
                # systemd holds the sockets that it hands to services: the service is the owner to name.
                if target[8:-1] not in owner or owner[target[8:-1]] == 1:
                    owner[target[8:-1]] = pid
    programs: "Dict[str, str]" = {}
    for row in wanted:
        holder = owner.get(str(row.pop("inode")))
        if holder is not None:
            row["pid"], row["program"] = holder, peek("/proc/%d/comm" % holder)
            if row["program"] not in ("sshd", "systemd"):
                programs[str(holder)] = _executable(holder)
            unit = re.search(r"([^/\n]+\.(?:service|socket|scope))", peek("/proc/%d/cgroup" % holder) or "")
            row["unit"] = unit.group(1) if unit else None
    owners = owning_packages({path for path in programs.values() if path})
    for row in wanted:
        row["package"] = owners.get(programs.get(str(row["pid"]), ""))
    return as_json(wanted)


def _executable(pid: int) -> str:
    try:
        return os.readlink("/proc/%d/exe" % pid).replace(" (deleted)", "")
    except OSError:
        return ""
