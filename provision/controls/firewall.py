"""Controls of the packet filter. They warn only: what is to be open is the profile's word, not the host's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..facts.known import Unknown
from .model import Judged, Severity, Verdict, control, passed, unknown, warned

if TYPE_CHECKING:
    from ..facts.firewall import Socket

_SHOWN = 8
_SSH = frozenset(("sshd", "systemd"))
_PUBLISHER = "docker-proxy"
_DHCP = frozenset((67, 68, 546))


@control("firewall.default-deny", "What no rule lets in is refused", severity=Severity.MEDIUM)
def default_deny(host: Judged) -> Verdict:
    found = host.facts.firewall
    if isinstance(found, Unknown):
        return unknown(found)
    open_for = [family for family in ("ip", "ip6") if not found.denies_incoming(family)]
    if not open_for:
        return passed(f"IPv4 and IPv6, read by {', '.join(found.tools)}")
    names = {"ip": "IPv4", "ip6": "IPv6"}
    how = f"{' and '.join(names[f] for f in open_for)}: what no rule names is let in"
    return warned(
        "refused by default",
        how if found.tools else "there is no packet filter on this host",
        advice="Each service that listens can be reached, unless something before this host filters.",
    )


def _from_outside(host: Judged) -> tuple[Socket, ...] | Verdict:
    sockets = host.facts.sockets
    if isinstance(sockets, Unknown):
        return unknown(sockets)
    return tuple(s for s in sockets if not s.is_local and not (s.proto.startswith("udp") and s.port in _DHCP))


@control(
    "firewall.open-ports",
    "No service but sshd can be reached without a rule for it",
    severity=Severity.MEDIUM,
)
def open_ports(host: Judged) -> Verdict:
    heard, rules = _from_outside(host), host.facts.firewall
    if isinstance(heard, Verdict):
        return heard
    if isinstance(rules, Unknown):
        return unknown(rules)
    if rules.denies_incoming("ip") and rules.denies_incoming("ip6"):
        return passed("only by rules: what is not let in is refused")
    others = [s for s in heard if s.program not in _SSH and s.program != _PUBLISHER]
    if not others:
        return passed("sshd alone listens")
    told = list(dict.fromkeys(f"{s.port}/{s.proto} ({s.program or 'program not seen'})" for s in others))
    return warned(
        "sshd alone, or a filter that refuses by default",
        ", ".join(told[:_SHOWN]) + (f" and {len(told) - _SHOWN} more" if len(told) > _SHOWN else ""),
        advice="Let each listen on the addresses it needs, or set a filter before them.",
    )


@control("firewall.docker-published", "No container port is open past the firewall", severity=Severity.MEDIUM)
def docker_published(host: Judged) -> Verdict:
    heard = _from_outside(host)
    if isinstance(heard, Verdict):
        return heard
    published = list(dict.fromkeys(f"{s.port}/{s.proto}" for s in heard if s.program == _PUBLISHER))
    if published:
        return warned(
            "published on 127.0.0.1, or none",
            f"docker publishes {', '.join(published[:_SHOWN])} to every address",
            advice="docker's own rules come before those of ufw: publish as 127.0.0.1:PORT:PORT, "
            "or filter in the chain DOCKER-USER.",
        )
    if any(s.program is None for s in heard):
        return unknown("which program listens on which port can be seen by root only")
    return passed("none is published to every address")
