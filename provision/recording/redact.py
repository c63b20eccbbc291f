"""Takes names, addresses and serial numbers out of a recording, each always by the same stand-in, so that a
recording can be passed on and still be judged: what was equal stays equal."""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Mapping
from typing import Any

from .model import Recording
from .names import words

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
# Names that say nothing about whose host it is, and words of the items' own form.
_PUBLIC_USERS = frozenset(
    words("""
    root ubuntu debian admin ec2-user centos rocky almalinux cloud-user azureuser opc fedora user nobody sync
    name uid shell home password keys sudo groups authorities set locked none
    """)
)
_PUBLIC_HOSTS = frozenset(
    words("""
    localhost localhost.localdomain ip6-localhost ip6-loopback ip6-allnodes ip6-allrouters ip6-localnet
    ip6-mcastprefix linux debian ubuntu nvidia gpu node server host docker kubernetes local lab
    """)
)
_ABOUT_PEOPLE = frozenset({"accounts", "accounts.other", "rights", "sshd.effective", "sshd.files"})


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
    host = f"host{stand.number('host', recording.host)}"
    known = {**_hosts(recording, stand), **_serials(recording, stand)}
    users = _users(recording, stand)
    everywhere = _any_of(known)
    # A user's name may be a common word (`dev`, `data`): outside the items about people it is replaced
    # only where it cannot be anything else.
    about_people = _any_of(users)
    elsewhere = re.compile(
        rf"(?<=/home/){_choice(users)}(?![A-Za-z0-9])|(?<![A-Za-z0-9]){_choice(users)}(?=@)"
    )

    def clean(value: Any, name: re.Pattern[str]) -> Any:
        if isinstance(value, str):
            text = everywhere.sub(lambda found: known[found[0]], _numbers(value, stand))
            return name.sub(lambda found: users[found[0]], text)
        if isinstance(value, Mapping):
            return {clean(key, elsewhere): clean(each, name) for key, each in value.items()}
        if isinstance(value, list):
            return [clean(each, name) for each in value]
        return value

    items = {
        clean(item, elsewhere): clean(raw, about_people if item in _ABOUT_PEOPLE else elsewhere)
        for item, raw in recording.items.items()
    }
    return Recording(host, recording.taken, recording.as_root, recording.seconds, items)


def _any_of(words: Mapping[str, str]) -> re.Pattern[str]:
    return re.compile(rf"(?<![A-Za-z0-9]){_choice(words)}(?![A-Za-z0-9])")


def _choice(words: Mapping[str, str]) -> str:
    """One of the words, the longest first; what never matches where there are none."""
    return f"(?:{'|'.join(re.escape(word) for word in sorted(words, key=len, reverse=True)) or '(?!)'})"


def _hosts(recording: Recording, stand: _Stand) -> dict[str, str]:
    uname = recording.answer("uname").stdout.split()
    names = [recording.host, recording.file("/etc/hostname").text.strip(), *uname[1:2]]
    for line in recording.file("/etc/hosts").text.splitlines():
        names += line.split("#")[0].split()[1:]
    words: dict[str, str] = {}
    for name in names:
        for word in (name, name.split(".")[0]):
            if len(word) > 2 and word.lower() not in _PUBLIC_HOSTS and not _IPV4.fullmatch(word):
                words.setdefault(word, f"host{stand.number('host', word)}")
    return words


def _users(recording: Recording, stand: _Stand) -> dict[str, str]:
    people = _listed(recording.answer("accounts").stdout)
    # Those of the system have the distribution's names; others may be a person's all the same.
    others = _listed(recording.answer("accounts.other").stdout)
    people += [row for row in others if isinstance(uid := row.get("uid"), int) and uid >= 1000]
    names = [row.get("name") for row in people]
    return {
        name: f"user{stand.number('user', name)}"
        for name in names
        if isinstance(name, str) and name not in _PUBLIC_USERS and len(name) > 1
    }


def _serials(recording: Recording, stand: _Stand) -> dict[str, str]:
    found = re.findall(r"\"serial(?:_number)?\"\s*:\s*\"([^\"]{4,})\"", recording.answer("lsblk").stdout)
    return {serial: f"SERIAL{stand.number('serial', serial)}" for serial in found}


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
