"""Controls of the packet filter: what it refuses, what it lets in, whether that is what the role wants."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..facts.known import Unknown
from ..planners import firewall as planner
from ..planners import firewall_docker as docker
from ..planners import firewall_fail2ban as fail2ban
from ..planners import firewall_state as state
from ..planners.firewall_files import RULES, UNIT_FILE
from ..planners.firewall_nft import TABLE
from ..planners.firewall_openings import openings, ssh_ports
from ..planners.firewall_refusal import firewalld_runs
from .model import Disrupts, Judged, Severity, Verdict, control, failed, passed, skipped, unknown

if TYPE_CHECKING:
    from ..planners.firewall import WantedFirewall

ROLE = "firewall"
_NAMES = {"ip": "IPv4", "ip6": "IPv6"}
LEFT = "the packet filter is left to others (firewall_managed: false)"


@control(
    "firewall.default-deny",
    "What no rule lets in is refused",
    severity=Severity.HIGH,
    role=ROLE,
    disrupts=Disrupts.SERVICE,
)
def default_deny(host: Judged) -> Verdict:
    found = host.facts.firewall
    if isinstance(found, Unknown):
        return unknown(found)
    open_for = [family for family in _NAMES if not found.denies_incoming(family)]
    if not open_for:
        return passed(f"IPv4 and IPv6, read by {', '.join(found.tools)}")
    how = f"{' and '.join(_NAMES[f] for f in open_for)}: what no rule names is let in"
    said = how if found.tools else "there is no packet filter on this host"
    if not host.profile["firewall_managed"]:
        return skipped(f"{LEFT}; {said}")
    return failed(
        "refused by default",
        said,
        advice="Each service that listens can be reached, unless something before this host filters.",
    )


def role_wants(host: Judged) -> WantedFirewall | Verdict:
    """What the role wants, or the verdict where it is not to be judged."""
    if not host.profile["firewall_managed"]:
        return skipped(LEFT)
    for fact in (host.facts.firewall, host.facts.sockets, host.facts.units):
        if isinstance(fact, Unknown):
            return unknown(fact)
    if firewalld_runs(host.facts):
        return skipped("firewalld looks after the packet filter here")
    return planner.wanted(host.facts, host.profile, host.stack)


@control(
    "firewall.open-ports",
    "Only sshd's ports and those that the profile names are open",
    severity=Severity.MEDIUM,
    role=ROLE,
    disrupts=Disrupts.SERVICE,
)
def open_ports(host: Judged) -> Verdict:
    wanted = role_wants(host)
    if isinstance(wanted, Verdict):
        return wanted
    if _others_do(host):
        return passed("refused by default, by rules of others, and the profile names no port")
    if wanted.refused:
        return failed("rules that fit this host", wanted.refused)
    open_ = [f"{port}/tcp (sshd)" for port in sorted(ssh_ports(host.facts))]
    open_ += [f"{o.ports}/{o.proto}" for o in openings(host.facts, host.profile)]
    expected = ", ".join(dict.fromkeys(open_))
    others = [f for f in wanted.files if f.path not in (docker.SCRIPT, *fail2ban.PATHS)]
    wrong = [f.path for f in others if not state.same(f, host.facts)]
    if wrong:
        return failed(expected, f"not as wanted: {', '.join(wrong)}")
    if not state.is_loaded(host.facts, wanted.files):
        return failed(expected, "the rules are on disk, and what is loaded is not what they say")
    units = host.facts.units
    off = [u.name for u in wanted.units if u.enabled and not (isinstance(units, dict) and u.name in units
           and units[u.name].starts_at_boot)]  # fmt: skip
    if off:
        return failed(expected, f"{', '.join(off)} does not start at boot, and nothing else loads the rules")
    return passed(expected, evidence=tuple(f"{w.about}: {w.says}" for w in wanted.why))


@control(
    "firewall.fail2ban",
    "fail2ban does not ban the operator or a peer",
    severity=Severity.MEDIUM,
    role=ROLE,
)
def bans(host: Judged) -> Verdict:
    wanted = role_wants(host)
    if isinstance(wanted, Verdict):
        return wanted
    if not fail2ban.runs(host.facts):
        return skipped("fail2ban does not run here")
    if wanted.refused:
        return skipped(f"the role does not run here: {wanted.refused}")
    wrong = [f.path for f in wanted.files if f.path in fail2ban.PATHS and not state.same(f, host.facts)]
    if not wrong:
        return passed("they are exempt")
    return failed("operators and peers are exempt", f"not as wanted: {', '.join(wrong)}")


def _others_do(host: Judged) -> bool:
    """Whether rules of others refuse by default already, and the profile asks for nothing of its own."""
    rules, facts = host.facts.firewall, host.facts
    assert not isinstance(rules, Unknown)
    named = ("firewall_allow", "firewall_ssh_from", "firewall_cluster_peers", "firewall_interfaces")
    ours = [facts.file(path) for path in (RULES, UNIT_FILE)]
    loaded = any(f"{chain.family} {chain.table}" == TABLE for chain in rules.chains)
    return (
        rules.denies_incoming("ip")
        and rules.denies_incoming("ip6")
        and not loaded
        and not any(isinstance(text, str) for text in ours)
        and not any(host.profile[variable] for variable in named)
    )
