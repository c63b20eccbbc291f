"""Our own nftables table as text: loaded whole in one transaction, beside whatever else is loaded.

In nftables a packet has to pass every table: ours refuses what nobody asked for, and what another
table refuses stays refused. The syntax is read alike by nft 1.0.6 (Debian 12) and 1.1.3 (Debian 13).
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .firewall_sources import text as word

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from .firewall_openings import Opening
    from .firewall_sources import Network, Sources

TABLE = "inet gpu_provision"
MARK = "gpu-provision "
OPERATOR = 'comment "operator"'
COMMENT_LIMIT = 100  # nft takes 128 bytes

HEAD = """\
#!/usr/sbin/nft -f
# Written by gpu-provision (role firewall); change it through the role's variables. One transaction: it
# replaces our own table and leaves every other one alone.
table inet gpu_provision
delete table inet gpu_provision
table inet gpu_provision {
"""
# For ICMPv6 the list is that of RFC 4890, section 4.4.1: what must not be dropped at a host. Leases are
# renewed by packets that look new (RFC 2131, RFC 8415), and a host that loses its lease is lost.
ALWAYS = """\
		ct state established,related accept
		iifname "lo" accept
		icmp type { echo-request, destination-unreachable, time-exceeded, parameter-problem } accept
		icmpv6 type { destination-unreachable, packet-too-big, time-exceeded, parameter-problem, echo-request, echo-reply } accept
		ip6 hoplimit 255 icmpv6 type { 133, 134, 135, 136, 141, 142, 148, 149 } accept
		ip6 saddr { ::, fe80::/10 } icmpv6 type { 130, 131, 132, 143 } accept
		ip6 saddr fe80::/10 ip6 hoplimit 1 icmpv6 type { 151, 152, 153 } accept
		udp sport 67 udp dport 68 accept
		ip6 saddr fe80::/10 udp sport 547 udp dport 546 accept
"""  # noqa: E501
# A refusal is told to whoever asks, so that a job with a closed port ends with an error and does not hang.
REFUSE = """\
		tcp flags & (fin | syn | rst | ack) == syn limit rate 100/second reject with tcp reset
		meta l4proto != tcp pkttype host limit rate 100/second reject with icmpx type admin-prohibited
"""
SET = """\
	set ssh_new{family} {{
		type ipv{family}_addr
		size 65535
		flags dynamic,timeout
		timeout 10m
	}}
"""


@dataclass(frozen=True)
class Ssh:
    """sshd's ports. `sources` None lets everybody in; `per_minute` 0 counts nobody's connections.

    `exempt` and `operators` are not counted. Who is counted and too quick waits a few seconds, as the
    budget fills up again and TCP asks again: nobody is shut out for good.
    """

    ports: tuple[int, ...]
    sources: Sources | None
    per_minute: int
    burst: int
    exempt: Sources
    operators: tuple[str, ...]


def render(ssh: Ssh, openings: Sequence[Opening], interfaces: Sequence[str], guests: Sequence[str]) -> str:
    """The text of the file; the mark on its last rule tells what was loaded from it."""
    lines = [*_ssh_sets(ssh), "\tchain input {"]
    lines += ["\t\ttype filter hook input priority filter + 5; policy drop;", *ALWAYS.splitlines()]
    lines += [f'\t\tiifname "{name}" accept' for name in interfaces]
    for pattern in guests:
        lines += [f'\t\tiifname "{pattern}" udp dport {{ 53, 67, 547 }} accept']
        lines += [f'\t\tiifname "{pattern}" tcp dport {{ 53, 67 }} accept']
    if ssh.ports:
        lines.append(f"\t\ttcp dport {_several(ssh.ports)} jump ssh")
    for opening in openings:
        lines += [f"\t\t{rule}" for rule in _opening(opening)]
    lines += REFUSE.splitlines()
    chain = ["\tchain ssh {", *(f"\t\t{rule}" for rule in _ssh(ssh)), "\t}"] if ssh.ports else []
    marked = essential("\n".join([*lines, *chain]))
    lines.append(f'\t\tcounter comment "{MARK}{hashlib.sha256(marked.encode()).hexdigest()[:12]}"')
    # The chain that is jumped to has to be known first.
    at = lines.index("\tchain input {")
    return HEAD + "\n".join([*lines[:at], *chain, *lines[at:], "\t}", "}"]) + "\n"


def essential(text: str) -> str:
    """The text without the operators' exemptions, which follow whoever runs."""
    return "".join(line + "\n" for line in text.splitlines() if OPERATOR not in line)


def operators(text: str) -> tuple[str, ...]:
    """Addresses that a file of ours already exempts as operators'."""
    return tuple(re.findall(rf"(?m)^\s*ip6? saddr (\S+) accept {OPERATOR}$", text))


def mark(text: str) -> str | None:
    """The mark in a file's text, or in a listed rule."""
    found = re.search(rf'comment "{MARK}([0-9a-f]+)"', text)
    return found[1] if found else None


def comment(said: str) -> str:
    """Words as a comment that nft takes: no quotes, no line ends, short. Empty where there are none."""
    plain = " ".join(re.sub(r"[^\w .,:;()/+@=#-]", " ", said).split())
    short = plain.encode()[:COMMENT_LIMIT].decode(errors="ignore").strip()
    return f' comment "{short}"' if short else ""


def _ssh_sets(ssh: Ssh) -> Iterator[str]:
    if ssh.ports and ssh.per_minute:
        for family in (4, 6):
            yield from SET.format(family=family).splitlines()


def _ssh(ssh: Ssh) -> Iterator[str]:
    if ssh.per_minute:
        for address in ssh.operators:
            yield f"{'ip6' if ':' in address else 'ip'} saddr {address} accept {OPERATOR}"
        yield from _from(ssh.exempt, "accept")
        limit = f"limit rate over {ssh.per_minute}/minute burst {ssh.burst} packets"
        # Somebody with IPv6 has a whole /64 to come from.
        yield f"ct state new add @ssh_new4 {{ ip saddr {limit} }} counter drop"
        yield f"ct state new add @ssh_new6 {{ ip6 saddr and ffff:ffff:ffff:ffff:: {limit} }} counter drop"
    if ssh.sources is None:
        yield "accept"
    else:
        yield from _from(ssh.sources, "accept")


def _opening(opening: Opening) -> Iterator[str]:
    rule = f"{opening.proto} dport {opening.ports} accept{comment(opening.why)}"
    if opening.sources is None:
        yield rule
    else:
        yield from _from(opening.sources, rule)


def _from(sources: Sources, rest: str) -> Iterator[str]:
    if sources.v4:
        yield f"ip saddr {_several(_words(sources.v4))} {rest}"
    if sources.v6:
        yield f"ip6 saddr {_several(_words(sources.v6))} {rest}"


def _words(networks: Iterable[Network]) -> list[str]:
    return [word(network) for network in networks]


def _several(values: Sequence[object]) -> str:
    return str(values[0]) if len(values) == 1 else f"{{ {', '.join(map(str, values))} }}"
