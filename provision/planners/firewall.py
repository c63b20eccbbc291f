"""Role firewall: what nobody asked for is refused, for IPv4 and IPv6, beside whatever others have loaded.

A host that uses ufw keeps it, with our rules at the end of its own files. Every other one gets a table of
nftables of our own. Chains of docker, fail2ban, libvirt, iptables-persistent and of people are never touched.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from . import firewall_docker as docker
from . import firewall_fail2ban as fail2ban
from . import firewall_files as text
from . import firewall_nft as nft
from . import firewall_state as state
from .firewall_openings import Opening, openings, ssh_ports
from .firewall_refusal import refusal, uses_ufw
from .firewall_services import closing, stopping
from .firewall_sources import NoSource
from .wanted import Check, File, Unit, Wanted, Why

if TYPE_CHECKING:
    from ..catalog.stack import Stack
    from ..facts import Facts
    from ..facts.known import Unknown
    from ..profile.model import Profile

# The kernel begins to follow connections when the first rule asks for their state. It is given two seconds
# with those that are under way, so that a download does not look like something that nobody asked for.
PRIME = (
    "sh -c 'nft list table inet gpu_provision >/dev/null 2>&1 || { nft \"add table inet gpu_provision; "
    "add chain inet gpu_provision known { type filter hook input priority 0; }; "
    "add rule inet gpu_provision known ct state new\"; sleep 2; }'"
)
FORGET = f'nft "add table {nft.TABLE}; delete table {nft.TABLE}"'


@dataclass(frozen=True)
class WantedFirewall(Wanted):
    """`loaded` is what commit_confirm keeps of the kernel's state, `load` are the commands that load ours.

    `pending` says that what the files say is not loaded. `stop` are units that the profile wants stopped.
    """

    loaded: tuple[dict[str, str], ...] = ()
    load: tuple[str, ...] = ()
    pending: bool = False
    stop: tuple[str, ...] = ()


def wanted(facts: Facts, profile: Profile, stack: Stack | Unknown) -> WantedFirewall:
    """The rules as files, how they are loaded, and what is stopped. The stack plays no part."""
    if not profile["firewall_managed"]:
        return WantedFirewall()
    try:
        refused = refusal(facts, profile)
        if refused:
            return WantedFirewall(refused=refused)
        return _wanted(facts, profile, openings(facts, profile))
    except NoSource as e:
        return WantedFirewall(refused=str(e))


def _wanted(facts: Facts, profile: Profile, allowed: tuple[Opening, ...]) -> WantedFirewall:
    by_ufw, close = uses_ufw(facts), docker.wanted(facts, profile)
    files = text.of_ufw(facts, profile, allowed) if by_ufw else text.of_nft(facts, profile, allowed)
    files += text.gone_unless(facts, docker.SCRIPT, docker.script(allowed) if close else None, "0755")
    commands = [f"/usr/sbin/nft -f {text.RULES}"] * (not by_ufw) + [docker.SCRIPT] * close
    unit = text.gone_unless(facts, text.UNIT_FILE, text.unit(commands) if commands else None)
    files += [*unit, *fail2ban.files(facts, profile)]
    units = (Unit(text.SERVICE, enabled=bool(commands), active=bool(commands)),) if unit else ()
    stop = stopping(facts, profile)
    return WantedFirewall(
        files=tuple(files),
        units=units,
        packages=() if by_ufw else ("nftables",),
        checks=() if by_ufw else (Check(f"nft -c -f {text.RULES}"),),
        load=(() if not _leaves_nft(files) else (FORGET,)) if by_ufw else (PRIME, f"nft -f {text.RULES}"),
        loaded=({"nft": nft.TABLE},) if not by_ufw or _leaves_nft(files) else (),
        reload=tuple(_reload(facts, files, by_ufw=by_ufw)),
        pending=not state.is_loaded(facts, files) or (close and not state.docker_closed(facts, allowed)),
        stop=tuple(stop),
        steps=(*closing(facts, allowed), *(f"stop and disable {name}" for name in stop)),
        why=_why(facts, profile, allowed, by_ufw=by_ufw),
    )


def _leaves_nft(files: list[File]) -> bool:
    """Whether our table's file goes, because the host has come to use ufw."""
    return any(f.path == text.RULES and f.text is None for f in files)


def _reload(facts: Facts, files: list[File], *, by_ufw: bool) -> list[str]:
    """What makes files effective, whichever way they changed; it is run again after they are put back."""
    commands = ["systemctl daemon-reload"]
    if by_ufw:
        commands.append("ufw reload")
    if any(f.path == docker.SCRIPT for f in files):
        commands.append(docker.FOLLOW)
    if fail2ban.runs(facts):
        commands.append("systemctl try-reload-or-restart fail2ban.service")
    return commands


def _why(facts: Facts, profile: Profile, allowed: tuple[Opening, ...], *, by_ufw: bool) -> tuple[Why, ...]:
    ports = ", ".join(str(port) for port in sorted(ssh_ports(facts)))
    why = [Why("ssh", f"sshd listens on {ports}")]
    why.append(Why("backend", "ufw is in use and is kept" if by_ufw else "nftables, in a table of our own"))
    why += [Why(f"{o.ports}/{o.proto}", o.why or "firewall_allow names it") for o in allowed]
    if by_ufw and profile["firewall_ssh_per_minute"]:
        why.append(Why("ssh", "connections are not counted: ufw's own `limit` would shut the operator out"))
    return tuple(why)
