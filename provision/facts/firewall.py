"""Listening sockets, and the packet filter that stands before them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .answers import int_of, plain, quote, rows, text_of
from .known import Unknown
from .record import record

if TYPE_CHECKING:
    from ..recording.model import Answer

_DENIES = frozenset({"drop", "reject", "deny"})

# A state that new connections have, too, is no condition of an `accept`: whoever comes is let in.
_NEW = re.compile(
    r"ct state (?:\{[^}]*\bnew\b[^}]*\}|[\w,]*\bnew\b[\w,]*)"
    r"|-m (?:conntrack|state) --(?:ctstate|state) (?:\w+,)*NEW\b[\w,]*"
)


@record
class Socket:
    """One listening socket. `program` and `unit` are None where its owner could not be seen, `package` where
    none has the program or that was not asked."""

    proto: str
    address: str
    port: int
    program: str | None
    unit: str | None
    pid: int | None
    package: str | None = None

    @property
    def is_local(self) -> bool:
        """Only this host can reach it."""
        return self.address.startswith("127.") or self.address in {"::1", "::ffff:127.0.0.1"}


@record
class Chain:
    """One chain of nftables or iptables. `hook` and `policy` are empty for a chain that others jump to."""

    family: str
    table: str
    name: str
    hook: str
    policy: str
    rules: tuple[str, ...]

    @property
    def denies_by_default(self) -> bool:
        """What no rule lets through is refused: by the first rule without a condition, or else by policy."""
        for rule in self.rules:
            bare = re.sub(
                r"counter( packets \d+ bytes \d+)?|-m comment|(?:--)?comment (?:\"[^\"]*\"|\S+)"
                r"|log\b.*?(?=accept|drop|reject|$)|^\[\d+:\d+\]",
                "",
                rule,
            )
            if re.fullmatch(r"\s*(?:drop|reject\b.*|-A \S+\s+-j (?:DROP|REJECT\b.*))\s*", bare):
                return True
            if re.fullmatch(r"\s*(?:accept|-A \S+\s+-j ACCEPT)\s*", _NEW.sub("", bare)):
                return False
        return self.policy.lower() in _DENIES


@record
class Firewall:
    """All chains that are loaded, of every tool that could be asked; `tools` are those that answered."""

    tools: tuple[str, ...]
    chains: tuple[Chain, ...]
    zones: str

    @property
    def of_ufw(self) -> bool:
        """ufw's chains are loaded."""
        return any(chain.name == "ufw-user-input" for chain in self.chains)

    def incoming(self, family: str) -> tuple[Chain, ...]:
        """Chains that see packets for this host of `ip` or `ip6`."""
        return tuple(c for c in self.chains if c.hook == "input" and c.family in {family, "inet"})

    def denies_incoming(self, family: str) -> bool:
        return any(chain.denies_by_default for chain in self.incoming(family))


def sockets(answer: Answer) -> tuple[Socket, ...] | Unknown:
    found = rows(answer, "sockets")
    if isinstance(found, Unknown):
        return found
    result = []
    for row in found:
        proto, address, port = text_of(row, "proto"), text_of(row, "address"), int_of(row, "port")
        if proto is None or address is None or port is None:
            return Unknown(
                f"sockets: an entry without proto, address or port: {quote(str(row))}", answer.item
            )
        program, unit = text_of(row, "program"), text_of(row, "unit")
        package = text_of(row, "package")
        result.append(Socket(proto, address, port, program, unit, int_of(row, "pid"), package))
    return tuple(result)


def firewall(answer: Answer) -> Firewall | Unknown:
    """`{"rules": [one answer a tool]}`. One that failed makes the whole unknown: its rules may deny all."""
    if answer.silence is not None:
        return Unknown(answer.silence, answer.item)
    entries = answer.raw.get("rules")
    if not isinstance(entries, list):
        return Unknown("firewall: no list of rule sets", answer.item)
    tools: list[str] = []
    chains: list[Chain] = []
    zones = ""
    for entry in entries:
        argv = entry.get("argv") if isinstance(entry, dict) else None
        if not isinstance(argv, list) or not argv:
            return Unknown(f"firewall: a rule set without its command: {quote(str(entry))}", answer.item)
        tool = str(argv[0])
        # Older recordings asked ufw, too, which then failed in the read-only view.
        if entry.get("missing") or "not_asked" in entry or tool == "ufw":
            continue
        if entry.get("rc") != 0 or entry.get("cut") or not isinstance(entry.get("stdout"), str):
            said = quote(str(entry.get("stderr") or entry.get("stdout") or "no whole answer"))
            return Unknown(f"{tool}: {said}", answer.item)
        text = plain(entry["stdout"])
        tools.append(tool)
        read: list[Chain] | Unknown = []
        if tool == "nft":
            read = nft_chains(text)
        elif tool.startswith("ip"):
            read = _iptables(text, "ip6" if tool.startswith("ip6") else "ip")
        else:
            zones = text
        if isinstance(read, Unknown):
            return read
        chains += read
    if not entries:
        return Unknown("firewall: no tool was asked", answer.item)
    return Firewall(tuple(tools), tuple(chains), zones)


def nft_chains(text: str) -> list[Chain] | Unknown:
    """`nft list ruleset`, or a file that nft reads: tables with chains; sets and maps are passed over."""
    chains: list[Chain] = []
    family = table = chain = hook = policy = ""
    rules: list[str] = []
    depth = 0
    dormant = False
    for raw in text.splitlines():
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        opened = re.fullmatch(r"(table|chain)\s+(?:(\S+)\s+)?(\S+)\s*\{(?:\s*#.*)?", line)
        if opened and opened[1] == "table" and depth == 0:
            family, table, dormant = opened[2] or "ip", opened[3], False
        elif depth == 1 and re.match(r"flags\b.*\bdormant\b", line):
            dormant = True  # no packet passes its chains
        elif opened and opened[1] == "chain" and depth == 1:
            chain, hook, policy, rules = opened[3], "", "", []
        elif chain and depth == 2 and line != "}":
            if base := re.match(r"type \S+ hook (\S+)", line):
                hook = "" if dormant else base[1]
                stated = re.search(r"policy (\w+)", line)
                policy = stated[1] if stated else "accept"
            else:
                rules.append(line)
        elif depth == 0 and not re.fullmatch(r"(?:delete )?table \S+ \S+", line):
            return Unknown(f"nft list ruleset: unexpected line: {quote(line)}", "firewall")
        # Braces inside quotes (comments) open nothing.
        bare = re.sub(r"\"[^\"]*\"", "", line)
        depth += bare.count("{") - bare.count("}")
        if depth == 1 and chain:
            chains.append(Chain(family, table, chain, hook, policy, tuple(rules)))
            chain = ""
    if depth != 0:
        return Unknown("nft list ruleset: the rule set is not whole", "firewall")
    return chains


def _iptables(text: str, family: str) -> list[Chain] | Unknown:
    """iptables-save: `*table`, `:CHAIN POLICY [counters]`, rules, COMMIT."""
    heads: dict[tuple[str, str], str] = {}
    rules: dict[tuple[str, str], list[str]] = {}
    table = ""
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith("*"):
            table = line[1:].strip()
        elif line == "COMMIT":
            table = ""
        elif table and (head := re.match(r":(\S+) (\S+)", line)):
            heads[table, head[1]] = head[2]
            rules[table, head[1]] = []
        elif table and (rule := re.match(r"(?:\[\d+:\d+\] )?-A (\S+)", line)) and (table, rule[1]) in rules:
            rules[table, rule[1]].append(line)
        else:
            return Unknown(f"iptables-save: unexpected line: {quote(line)}", "firewall")
    if table:
        return Unknown("iptables-save: the rule set is not whole", "firewall")
    hooks = {"INPUT": "input", "FORWARD": "forward", "OUTPUT": "output"}
    return [
        Chain(
            family,
            where,
            name,
            hooks.get(name, "") if policy != "-" and where == "filter" else "",
            "" if policy == "-" else policy.lower(),
            tuple(rules[where, name]),
        )
        for (where, name), policy in heads.items()
    ]
