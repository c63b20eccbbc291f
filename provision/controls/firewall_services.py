"""Controls of the services that listen: those that nobody asked for, and those that were to be stopped."""

from __future__ import annotations

from ..facts.known import Unknown
from ..planners import firewall_services as services
from ..planners.firewall_openings import openings
from ..planners.firewall_sources import NoSource
from .model import Disrupts, Judged, Severity, Verdict, control, failed, passed, skipped, unknown, warned

_SHOWN = 8


@control("firewall.unasked-services", "Nothing listens that nobody asked for", severity=Severity.LOW)
def unasked_services(host: Judged) -> Verdict:
    facts = host.facts
    if isinstance(facts.sockets, Unknown):
        return unknown(facts.sockets)
    if isinstance(facts.firewall, Unknown):
        return unknown(facts.firewall)
    try:
        found = services.unasked(facts, openings(facts, host.profile))
    except NoSource as e:
        return unknown(str(e))
    told = tuple(dict.fromkeys(services.told(socket) for socket in found))
    if not told:
        return passed("sshd, and what the profile names")
    closed = facts.firewall.denies_incoming("ip") and facts.firewall.denies_incoming("ip6")
    return warned(
        "sshd, and what the profile names",
        ", ".join(told[:_SHOWN]) + (f" and {len(told) - _SHOWN} more" if len(told) > _SHOWN else ""),
        advice=("The packet filter refuses them by default. " if closed else "They can be reached. ")
        + "Name them in firewall_allow, let them listen on 127.0.0.1, or have them stopped by firewall_stop.",
        evidence=told,
    )


@control(
    "firewall.stopped-services",
    "Services that are to be stopped neither run nor start at boot",
    severity=Severity.MEDIUM,
    role="firewall",
    disrupts=Disrupts.SERVICE,
)
def stopped_services(host: Judged) -> Verdict:
    if not host.profile["firewall_managed"]:
        return skipped("the packet filter and its services are left to others (firewall_managed: false)")
    if isinstance(host.facts.sockets, Unknown):
        return unknown(host.facts.sockets)
    named = host.profile["firewall_stop"] or []
    if not named:
        return skipped("firewall_stop names none")
    for fact in (host.facts.units_running, host.facts.unit_files):
        if isinstance(fact, Unknown):
            return unknown(fact)
    left = services.stopping(host.facts, host.profile)
    if left:
        return failed("stopped and disabled", f"{', '.join(left)} runs or starts at boot")
    return passed(", ".join(map(str, named)))
