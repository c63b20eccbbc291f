"""When the firewall role must not run: what would cut the line, or who else looks after the packet filter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..facts.known import Absent, Unknown
from ..profile.shapes import firewall_allow, firewall_interfaces
from . import confirm_seconds
from . import firewall_ufw as ufw
from .firewall_openings import never_stopped, operator, ssh_ports
from .firewall_sources import sources

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..facts import Facts
    from ..profile.model import Profile

KUBERNETES = ("kubelet.service", "k3s.service", "k3s-agent.service")
LEAVE = "Set `firewall_managed: false` to leave the packet filter as it is."


def refusal(facts: Facts, profile: Profile) -> str | None:
    """Why nothing may be changed, and what to do; None where nothing stands against it. Raises NoSource."""
    return next(_reasons(facts, profile), None)


def uses_ufw(facts: Facts) -> bool:
    """ufw is switched on for good, and its chains are loaded."""
    rules, conf = facts.firewall, facts.file(ufw.CONF)
    enabled = isinstance(conf, str) and ufw.enabled(conf)
    return enabled and not isinstance(rules, Unknown) and rules.of_ufw


def firewalld_runs(facts: Facts) -> bool:
    rules = facts.firewall
    asked = not isinstance(rules, Unknown) and "firewall-cmd" in rules.tools
    return asked or _runs(facts, "firewalld.service")


def kubernetes(facts: Facts) -> str | None:
    """The unit that makes this host a node of a Kubernetes cluster."""
    return next((name for name in KUBERNETES if _runs(facts, name)), None)


def _runs(facts: Facts, unit: str) -> bool:
    units = facts.units
    return not isinstance(units, Unknown | Absent) and unit in units and units[unit].runs


def _reasons(facts: Facts, profile: Profile) -> Iterator[str]:
    yield from _values(profile)
    if isinstance(facts.units, Absent):
        yield "systemd does not run on this host, and its timer is what puts a bad change back."
    if isinstance(facts.sockets, Unknown):
        yield f"what listens on this host is not known: {facts.sockets.reason}."
    if isinstance(facts.firewall, Unknown):
        yield f"what is filtered on this host is not known: {facts.firewall.reason}."
    if firewalld_runs(facts):
        yield f"firewalld looks after the packet filter here; open ports with firewall-cmd. {LEAVE}"
    node = kubernetes(facts)
    if node and not profile["firewall_interfaces"]:
        yield (
            f"{node} runs here: its pods, its peers and its network plugin would be cut off. Name the "
            f"interfaces of its pods in firewall_interfaces and its nodes in firewall_allow. {LEAVE}"
        )
    if not ssh_ports(facts):
        yield "no port was found on which sshd listens for others, so nothing would let anybody in."
    words = profile["firewall_ssh_from"] or ()
    me = operator(facts)
    if words and me and not sources(words, profile["firewall_peers"] or {}).holds(me):
        yield (
            f"firewall_ssh_from leaves out {me}, the address that this run logs in from. Add it, or run from "
            "an address that may log in."
        )
    yield from _files(facts)


def _values(profile: Profile) -> Iterator[str]:
    """The command has checked these already; a play of one's own may not have."""
    checks: tuple[tuple[str, Callable[[Any], str | None]], ...] = (
        ("firewall_allow", firewall_allow),
        ("firewall_interfaces", firewall_interfaces),
    )
    for name, check in checks:
        if problem := check(profile[name] or []):
            yield f"{name}: {problem}."
    if too := confirm_seconds.refusal(profile["firewall_confirm_seconds"]):
        yield f"firewall_confirm_seconds: {too}."
    if bad := next((str(u) for u in profile["firewall_stop"] or () if never_stopped(str(u))), None):
        yield f"firewall_stop names {bad}, which carries the line or filters it, and is not stopped."


def _files(facts: Facts) -> Iterator[str]:
    if not uses_ufw(facts):
        return
    for path in (*ufw.RULES.values(), ufw.DEFAULTS):
        text = facts.file(path)
        if not isinstance(text, str):
            why = text.reason if isinstance(text, Unknown) else "it is not there"
            yield f"ufw is in use, and {path} could not be read: {why}."
        elif path != ufw.DEFAULTS and ufw.END not in text:
            yield f"ufw is in use, and {path} is none of its files: it has no section of rules."
