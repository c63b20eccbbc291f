"""Control of what others have set up in the packet filter: it stays, and may stand against the profile."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..facts.known import Unknown
from ..planners import firewall_state as state
from ..planners import firewall_ufw as ufw
from ..planners.firewall_openings import openings, ssh_ports
from ..planners.firewall_refusal import uses_ufw
from ..planners.firewall_sources import NoSource
from .model import Judged, Severity, Verdict, control, passed, unknown, warned

if TYPE_CHECKING:
    from ..facts.firewall import Firewall


@control("firewall.foreign-rules", "Rules of others do not stand against ours", severity=Severity.LOW)
def foreign_rules(host: Judged) -> Verdict:
    rules = host.facts.firewall
    if isinstance(rules, Unknown):
        return unknown(rules)
    # ufw's chains are ours to fill where it is in use; what else there is then is not seen apart from them.
    others = () if uses_ufw(host.facts) else state.foreign(rules.chains)
    if uses_ufw(host.facts) and (limited := _limited_by_ufw(host)):
        return warned(
            "new SSH connections are not limited by ufw",
            f"ufw limits {', '.join(limited)} to 6 connections in 30 s, and a run opens more",
            advice="`ufw delete limit …`, and `ufw allow …` in its place; the rule is kept as it is.",
        )
    told = tuple(
        f"{c.family} {c.table} {c.name}: policy {c.policy or 'none'}, {len(c.rules)} rules" for c in others
    )
    if not told:
        return passed("none")
    try:
        ports = {o.ports for o in openings(host.facts, host.profile)}
    except NoSource as e:
        return unknown(str(e))
    refusing = [c for c in others if c.denies_by_default]
    unheard = (
        sorted(p for p in ports if not any(_names(rules, c.family, p) for c in refusing)) if refusing else []
    )
    if unheard and host.profile["firewall_managed"]:
        return warned(
            "what the profile lets in is refused by no other rule",
            f"{refusing[0].table} {refusing[0].name} refuses by default and names no {', '.join(unheard)}",
            advice="A packet has to pass every chain: let it in there too, or take that chain away.",
            evidence=told,
        )
    return passed(f"{len(told)} chains of others, which stay", evidence=told)


def _limited_by_ufw(host: Judged) -> tuple[str, ...]:
    """sshd's ports that ufw's own `limit` stands before, which shuts out whoever is quick."""
    texts = [host.facts.file(path) for path in ufw.RULES.values()]
    ports = {str(port) for port in ssh_ports(host.facts)}
    found = {port for text in texts if isinstance(text, str) for port in ufw.limits(text)}
    return tuple(sorted(ports & found))


def _names(rules: Firewall, family: str, ports: str) -> bool:
    """Whether some rule of that family speaks of these ports."""
    words = {ports, ports.replace("-", ":")}
    return any(
        word in rule.replace(",", " ").split()
        for c in rules.chains if c.family == family
        for rule in c.rules for word in words
    )  # fmt: skip
