"""ufw's own files with our rules at their end: every rule of others comes first and stays byte for byte.

ufw keeps its rules in /etc/ufw/user.rules and user6.rules (one `### tuple ###` line and the iptables rules
that it means), its default policies in /etc/default/ufw; `ufw reload` loads them (ufw(8), ufw-framework(8)).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .firewall_nft import comment
from .firewall_sources import network
from .firewall_sources import text as word

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .firewall_openings import Opening
    from .firewall_sources import Network

RULES = {4: "/etc/ufw/user.rules", 6: "/etc/ufw/user6.rules"}
DEFAULTS = "/etc/default/ufw"
CONF = "/etc/ufw/ufw.conf"
OURS = "gpu-provision"
_ANY = {4: "0.0.0.0/0", 6: "::/0"}
CHAIN = {4: "ufw-user-input", 6: "ufw6-user-input"}
END = "### END RULES ###"
REFUSING = ("DROP", "REJECT")


@dataclass(frozen=True)
class Admitted:
    """A rule of others that lets something in: its protocol, ports and source in ufw's words."""

    proto: str
    ports: str
    source: str

    @property
    def every_port(self) -> bool:
        return self.ports == "any"

    def names(self, proto: str, port: int) -> bool:
        """Whether it names this port; a rule for every port names none."""
        if self.every_port or self.proto not in ("any", proto):
            return False
        spans = (part.partition(":") for part in self.ports.split(","))
        return any(int(first) <= port <= int(last or first) for first, _, last in spans)

    def holds(self, address: str) -> bool:
        """Whether it lets this address in."""
        ours, theirs = network(address.partition("%")[0]), network(self.source)
        if ours is None or theirs is None or ours.version != theirs.version:
            return False
        return ours.network_address in theirs


def admitted(text: str) -> tuple[Admitted, ...]:
    """The rules of others in a rules file that let packets in."""
    found = re.findall(
        r"(?m)^### tuple ### (?:allow|limit)(?:_log(?:-all)?)? (\S+) (\S+) \S+ \S+ (\S+)", _without_ours(text)
    )
    return tuple(Admitted(*words) for words in found)


def with_ours(text: str, family: int, openings: Sequence[Opening]) -> str | None:
    """A rules file with the rules for `openings`, and none of ours besides; None where it is no such file."""
    if END not in text:
        return None
    head, _, tail = _without_ours(text).partition(END)
    blocks = "".join(f"{block}\n\n" for opening in openings for block in _blocks(opening, family))
    return f"{head.rstrip()}\n\n{blocks}{END}{tail}"


def defaults(text: str) -> str:
    """/etc/default/ufw refusing by default, for IPv6 too."""
    if default_input(text) not in REFUSING:
        text = _set(text, "DEFAULT_INPUT_POLICY", '"DROP"')
    return text if ipv6(text) else _set(text, "IPV6", "yes")


def enabled(conf: str) -> bool:
    """Whether ufw.conf has ufw switched on."""
    return _value(conf, "ENABLED").lower() == "yes"


def default_input(text: str) -> str:
    return _value(text, "DEFAULT_INPUT_POLICY").upper()


def ipv6(text: str) -> bool:
    return _value(text, "IPV6").lower() == "yes"


def limits(text: str) -> tuple[str, ...]:
    """Ports to which somebody let ufw limit new connections (6 in 30 s), which shuts an operator out."""
    return tuple(re.findall(r"(?m)^### tuple ### limit(?:_log(?:-all)?)? \S+ (\S+) ", text))


def rules(text: str, family: int) -> int:
    """How many rules a rules file puts into the chain of incoming packets."""
    return len(re.findall(rf"(?m)^-A {CHAIN[family]} ", text))


def _blocks(opening: Opening, family: int) -> Iterator[str]:
    ports = opening.ports.replace("-", ":")
    networks: Sequence[Network | None] = (None,)
    if opening.sources is not None:
        networks = opening.sources.v4 if family == 4 else opening.sources.v6
    match = f"-m multiport --dports {ports}" if ":" in ports else f"--dport {ports}"
    said = f"{OURS}: {comment(opening.why).removeprefix(' comment ')[1:-1] or 'allowed by the profile'}"
    for one in networks:
        source = word(one) if one is not None else _ANY[family]
        where = f" -s {source}" if one is not None else ""
        yield (
            f"### tuple ### allow {opening.proto} {ports} {_ANY[family]} any {source} in "
            f"comment={said.encode().hex()}\n-A {CHAIN[family]} -p {opening.proto} {match}{where} -j ACCEPT"
        )


def _without_ours(text: str) -> str:
    ours = OURS.encode().hex()
    return re.sub(rf"(?m)^### tuple ### .* comment={ours}[0-9a-f]*\n(?:-A .*\n)*\n?", "", text)


def _value(text: str, key: str) -> str:
    found = re.findall(rf"(?m)^{key}=[\"']?([^\"'\n#]*)", text)
    return found[-1].strip() if found else ""


def _set(text: str, key: str, value: str) -> str:
    if re.search(rf"(?m)^{key}=", text):
        return re.sub(rf"(?m)^{key}=.*$", f"{key}={value}", text)
    return text + ("" if text.endswith("\n") or not text else "\n") + f"{key}={value}\n"
