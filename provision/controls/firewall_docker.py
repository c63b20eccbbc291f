"""Controls of the ports that docker publishes past every input chain."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..facts.known import Unknown
from ..planners import firewall_docker as docker
from ..planners import firewall_state as state
from ..planners.firewall_openings import openings
from ..planners.firewall_services import PUBLISHER, from_outside
from ..planners.firewall_sources import NoSource
from .firewall import ROLE, role_wants
from .model import Judged, Severity, Verdict, control, failed, passed, skipped, unknown, warned

if TYPE_CHECKING:
    from ..facts.firewall import Socket

_SHOWN = 8


@control(
    "firewall.docker-published",
    "No container port is open past the firewall",
    severity=Severity.MEDIUM,
)
def docker_published(host: Judged) -> Verdict:
    sockets = host.facts.sockets
    if isinstance(sockets, Unknown):
        return unknown(sockets)
    heard = from_outside(sockets)
    published = list(dict.fromkeys(f"{s.port}/{s.proto}" for s in heard if s.program == PUBLISHER))
    if published and not _closed(host):
        return warned(
            "published on 127.0.0.1, or none",
            f"docker publishes {', '.join(published[:_SHOWN])} to every address",
            advice="docker's own rules come before those of ufw and of this project: publish as "
            "127.0.0.1:PORT:PORT, or close them by `firewall_docker_published: close`.",
        )
    if published:
        return passed(f"{', '.join(published[:_SHOWN])}, only for whom DOCKER-USER lets in")
    if any(s.program is None for s in heard if not _kernels_own(s)):
        return unknown("which program listens on which port can be seen by root only")
    return passed("none is published to every address")


@control(
    "firewall.docker-user", "DOCKER-USER lets in whom the profile names", severity=Severity.MEDIUM, role=ROLE
)
def docker_user(host: Judged) -> Verdict:
    wanted, rules = role_wants(host), host.facts.firewall
    if isinstance(wanted, Verdict):
        return wanted
    assert not isinstance(rules, Unknown)
    if not docker.wanted(host.facts, host.profile):
        if docker.any_loaded(rules.chains) or isinstance(host.facts.file(docker.SCRIPT), str):
            return failed("left to docker", "our chain in DOCKER-USER is still there")
        return skipped("published ports are left to docker (firewall_docker_published: leave)")
    if wanted.refused:
        return skipped(f"the role does not run here: {wanted.refused}")
    file = next(f for f in wanted.files if f.path == docker.SCRIPT)
    if state.same(file, host.facts) and _closed(host):
        return passed("only those", evidence=(docker.chain_name(openings(host.facts, host.profile)),))
    return failed(
        "only those", "published ports are open for everybody, or for others than the profile names"
    )


def _closed(host: Judged) -> bool:
    if not (host.profile["firewall_managed"] and docker.wanted(host.facts, host.profile)):
        return False
    try:
        return state.docker_closed(host.facts, openings(host.facts, host.profile))
    except NoSource:
        return False


def _kernels_own(socket: Socket) -> bool:
    """A socket of the kernel (WireGuard, VXLAN) has no process, whoever looks."""
    return socket.proto == "udp" and socket.pid is None
