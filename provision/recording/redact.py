"""Takes names, addresses and serial numbers out of a recording, each always by the same stand-in, so that a
recording can be passed on and still be judged: what was equal stays equal."""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Mapping
from typing import Any

from .model import Recording

_UUID = re.compile(r"\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b")
_MAC = re.compile(r"(?<![0-9a-fA-F:])(?:[0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}(?![0-9a-fA-F:])")
_IPV4 = re.compile(r"(?<![\d.\-+~:])(?:\d{1,3}\.){3}\d{1,3}(?![\d.\-+~])")
_IPV6 = re.compile(r"(?<![0-9A-Za-z:.])(?:[0-9a-fA-F]{0,4}:){2,7}[0-9a-fA-F]{0,4}(?![0-9A-Za-z:.])")
_EMAIL = re.compile(r"\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+\b")
_SERIAL = re.compile(
    r"(<serial>|<board_serial>|\"serial(?:_number)?\"\s*:\s*\"|\bSerial Number\s*:\s*)([^<\"\s]+)",
    re.IGNORECASE,
)
_WORLD_WIDE = re.compile(r"\b(?:(?:eui|nvme|wwn|naa|uuid)[.-]?(?:0x)?[0-9a-fA-F]{12,}|0x[0-9a-fA-F]{16})\b")
_GUID = re.compile(r"(?<![0-9a-fA-F:])[0-9a-fA-F]{4}(?::[0-9a-fA-F]{4}){3}(?![0-9a-fA-F:])")
# Names that say nothing about whose host it is.
_PUBLIC_USERS = frozenset(
    [
        "root",
        "ubuntu",
        "debian",
        "admin",
        "ec2-user",
        "centos",
        "rocky",
        "almalinux",
        "cloud-user",
        "azureuser",
        "opc",
        "fedora",
        "user",
        "nobody",
        "sync",
    ]
)
_PUBLIC_HOSTS = frozenset(["localhost", "localhost.localdomain", "ip6-localhost", "ip6-loopback"])


class _Stand:
    """Hands out one stand-in a value, the same one each time."""

    def __init__(self) -> None:
        self.given: dict[tuple[str, str], str] = {}
        self.counts: dict[str, int] = {}

    def number(self, kind: str, value: str) -> int:
        key = (kind, value)
        if key not in self.given:
            self.counts[kind] = self.counts.get(kind, 0) + 1
            self.given[key] = str(self.counts[kind])
        return int(self.given[key])


def redacted(recording: Recording) -> Recording:
    """The recording with host names, addresses (their networks stay networks), MAC addresses, GUIDs, UUIDs,
    serial numbers, mail addresses and user names replaced."""
    stand = _Stand()
    words = _own_words(recording, stand)
    pattern = re.compile(
        r"(?<![\w])(?:" + "|".join(map(re.escape, sorted(words, key=len, reverse=True))) + r")(?![\w])"
    )

    def clean(value: Any) -> Any:
        if isinstance(value, str):
            text = _numbers(value, stand)
            return pattern.sub(lambda found: words[found[0]], text) if words else text
        if isinstance(value, Mapping):
            return {clean(key): clean(each) for key, each in value.items()}
        if isinstance(value, list):
            return [clean(each) for each in value]
        return value

    items = {clean(name): clean(raw) for name, raw in recording.items.items()}
    return Recording(
        f"host{stand.number('host', recording.host)}",
        recording.taken,
        recording.as_root,
        recording.seconds,
        items,
    )


def _own_words(recording: Recording, stand: _Stand) -> dict[str, str]:
    """Host and user names, and disks' serial numbers, with their stand-ins."""
    words: dict[str, str] = {}
    uname = recording.answer("uname").stdout.split()
    hosts = [recording.host, recording.file("/etc/hostname").text.strip(), *(uname[1:2])]
    for line in recording.file("/etc/hosts").text.splitlines():
        hosts += line.split("#")[0].split()[1:]
    for host in hosts:
        if (
            len(host) > 2
            and host.lower() not in _PUBLIC_HOSTS
            and not _IPV4.fullmatch(host)
            and host != "Linux"
        ):
            words[host] = f"host{stand.number('host', host)}"
            short = host.split(".")[0]
            if short != host and len(short) > 2:
                words.setdefault(short, f"host{stand.number('host', short)}")
    for row in _listed(recording.answer("accounts").stdout):
        name = row.get("name")
        if isinstance(name, str) and name not in _PUBLIC_USERS and len(name) > 1:
            words[name] = f"user{stand.number('user', name)}"
    for serial in re.findall(
        r"\"serial(?:_number)?\"\s*:\s*\"([^\"]{4,})\"", recording.answer("lsblk").stdout
    ):
        words[serial] = f"SERIAL{stand.number('serial', serial)}"
    return words


def _listed(text: str) -> list[dict[str, Any]]:
    try:
        found = json.loads(text)
    except ValueError:
        return []
    return [row for row in found if isinstance(row, dict)] if isinstance(found, list) else []


def _numbers(text: str, stand: _Stand) -> str:
    text = _UUID.sub(lambda m: f"00000000-0000-0000-0000-{stand.number('uuid', m[0].lower()):012x}", text)
    text = _SERIAL.sub(
        lambda m: m[0] if m[2] in ("N/A", "0", "***") else f"{m[1]}SERIAL{stand.number('serial', m[2])}", text
    )
    text = _MAC.sub(
        lambda m: m[0] if set(m[0]) <= set("0:fF") else _mac(stand.number("mac", m[0].lower())), text
    )
    text = _GUID.sub(lambda m: _guid(stand.number("guid", m[0].lower())), text)
    text = _WORLD_WIDE.sub(lambda m: f"wwn-{stand.number('wwn', m[0].lower()):016x}", text)
    text = _EMAIL.sub(lambda m: f"user{stand.number('mail', m[0])}@example.com", text)
    text = _IPV4.sub(lambda m: _ipv4(m[0], stand), text)
    return _IPV6.sub(lambda m: _ipv6(m[0], stand), text)


def _mac(number: int) -> str:
    return f"02:00:00:{number >> 16 & 255:02x}:{number >> 8 & 255:02x}:{number & 255:02x}"


def _guid(number: int) -> str:
    return f"0200:0000:{number >> 16 & 0xFFFF:04x}:{number & 0xFFFF:04x}"


def _ipv4(text: str, stand: _Stand) -> str:
    """Private and loopback addresses say nothing and stay; of others the network keeps its stand-in."""
    try:
        address = ipaddress.IPv4Address(text)
    except ValueError:
        return text
    if not address.is_global:
        return text
    network, _, last = text.rpartition(".")
    number = stand.number("net4", network)
    return f"198.{18 + (number >> 8) % 2}.{number & 255}.{last}"


def _ipv6(text: str, stand: _Stand) -> str:
    try:
        address = ipaddress.IPv6Address(text)
    except ValueError:
        return text
    if address.is_loopback or address.is_unspecified or address.is_multicast or text.count(":") < 3:
        return text
    network = stand.number("net6", address.exploded[:19])
    host = stand.number("host6", address.exploded[20:])
    return f"fe80::{host:x}" if address.is_link_local else f"2001:db8:{network:x}::{host:x}"
