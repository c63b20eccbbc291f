"""The lab's bridge: its own subnet, its way out through this machine, and taking all of it away again."""

from __future__ import annotations

import ipaddress
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import Failure
from .shell import run

if TYPE_CHECKING:
    from .place import Place

FIRST, LAST = 10, 250  # last numbers of the hosts' addresses
SUBNETS = [ipaddress.IPv4Network(f"10.{a}.{b}.0/24") for a in range(201, 240) for b in range(77, 256, 16)]


def subnet(place: Place) -> ipaddress.IPv4Network:
    """The lab's /24, chosen once where nothing of this machine's is; kept until the lab is empty."""
    kept = place.state / "subnet"
    if kept.exists():
        return ipaddress.IPv4Network(kept.read_text().strip())
    taken = _taken()
    start = int(place.bridge[3:], 16) % len(SUBNETS)
    for candidate in SUBNETS[start:] + SUBNETS[:start]:
        if not any(candidate.overlaps(other) for other in taken):
            kept.write_text(f"{candidate}\n")
            return candidate
    raise Failure("no private subnet is free for the lab's bridge", do="look at `ip route`")


def address(place: Place, number: int) -> str:
    return str(subnet(place)[number])


def up(place: Place) -> None:
    """Makes the bridge and the rules that let hosts out; does nothing where they are there."""
    net = subnet(place)
    if not Path(f"/sys/class/net/{place.bridge}").exists():
        run(["ip", "link", "add", place.bridge, "type", "bridge"])
    run(["ip", "addr", "replace", f"{net[1]}/{net.prefixlen}", "dev", place.bridge])
    run(["ip", "link", "set", place.bridge, "up"])
    for table, chain, rule in _rules(place):
        words = ["iptables", "-w", "-t", table]
        if run([*words, "-C", chain, *rule], check=False).returncode:
            run([*words, "-I", chain, "1", *rule])


def down(place: Place) -> None:
    """Takes rules and bridge away, however many times they were made."""
    for table, chain, rule in _rules(place):
        while run(["iptables", "-w", "-t", table, "-D", chain, *rule], check=False).returncode == 0:
            pass
    if Path(f"/sys/class/net/{place.bridge}").exists():
        run(["ip", "link", "del", place.bridge], check=False)
    (place.state / "subnet").unlink(missing_ok=True)


def tap(place: Place, link: str) -> None:
    """Makes the link of a virtual machine and puts it on the bridge."""
    run(["ip", "tuntap", "add", "dev", link, "mode", "tap"])
    run(["ip", "link", "set", link, "master", place.bridge, "up"])


def drop_link(link: str) -> None:
    """Removes a host's link at once; the kernel would do it too, a little after the host's last process."""
    if Path(f"/sys/class/net/{link}").exists():
        run(["ip", "link", "del", link], check=False)


def name_servers() -> str:
    """resolv.conf for hosts: this machine's, or the one behind a resolver that listens on loopback only."""
    text = Path("/etc/resolv.conf").read_text(errors="replace")
    behind = Path("/run/systemd/resolve/resolv.conf")
    if re.search(r"^nameserver\s+127\.", text, re.MULTILINE) and behind.exists():
        text = behind.read_text()
    return text


def known_names() -> str:
    """Lines of this machine's /etc/hosts that also hold elsewhere: all but loopback and its own names."""
    lines = Path("/etc/hosts").read_text(errors="replace").splitlines()
    return "".join(f"{line}\n" for line in lines if not re.match(r"\s*(127\.|::1|ff|fe|#|$)", line))


def _rules(place: Place) -> list[tuple[str, str, list[str]]]:
    net = str(subnet(place))
    mark = ["-m", "comment", "--comment", f"gpu-provision lab {place.bridge}"]
    return [
        ("nat", "POSTROUTING", ["-s", net, "!", "-d", net, *mark, "-j", "MASQUERADE"]),
        ("filter", "FORWARD", ["-i", place.bridge, *mark, "-j", "ACCEPT"]),
        ("filter", "FORWARD", ["-o", place.bridge, *mark, "-j", "ACCEPT"]),
    ]


def _taken() -> list[ipaddress.IPv4Network]:
    """Networks that this machine has a route to, and single addresses that it needs (name servers)."""
    taken = []
    for route in json.loads(run(["ip", "-j", "-4", "route", "show", "table", "all"]).stdout or "[]"):
        if re.match(r"\d", route.get("dst", "")):
            taken.append(ipaddress.ip_network(route["dst"], strict=False))
    for word in re.findall(r"\b\d+\.\d+\.\d+\.\d+\b", name_servers() + known_names()):
        try:
            taken.append(ipaddress.ip_network(word))
        except ValueError:
            continue
    return [network for network in taken if isinstance(network, ipaddress.IPv4Network)]
