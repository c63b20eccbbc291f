"""The files of role firewall: our table or ufw's rules, and the unit that loads what is ours at boot."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..facts.known import Absent, Unknown
from . import firewall_nft as nft
from . import firewall_ufw as ufw
from .firewall_openings import Opening, exempt, guest_bridges, operator, ssh_ports
from .firewall_sources import Sources, sources
from .wanted import File

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..facts import Facts
    from ..profile.model import Profile

RULES = "/etc/gpu-provision/firewall.nft"
SERVICE = "gpu-provision-firewall.service"
UNIT_FILE = "/etc/systemd/system/gpu-provision-firewall.service"
NFTABLES_CONF = "/etc/nftables.conf"
INCLUDE = f'include "{RULES}"'
# New connections that one address may open at once before they are counted by the minute: a run of ours with
# all its proofs opens fewer than 40.
BURST = 100
KEPT_OPERATORS = 8
UNIT = """\
# Written by gpu-provision (role firewall).
[Unit]
Description=gpu-provision: the packet filter of role firewall
DefaultDependencies=no
After=local-fs.target gpu-provision-revert.service nftables.service netfilter-persistent.service
Before=network-pre.target docker.service shutdown.target
Wants=network-pre.target
Conflicts=shutdown.target
# Whoever restarts or reloads nftables.service flushes every table, ours too.
PartOf=nftables.service
ReloadPropagatedFrom=nftables.service

[Service]
Type=oneshot
RemainAfterExit=yes
{commands}

[Install]
WantedBy=sysinit.target
"""


def of_nft(facts: Facts, profile: Profile, allowed: tuple[Opening, ...]) -> list[File]:
    """Our table, and where the host's own file is in use, its line that reads it. Raises NoSource."""
    files = [File(RULES, table(facts, profile, allowed))]
    units, there = facts.units, facts.file(NFTABLES_CONF)
    service = None if isinstance(units, Unknown | Absent) else units.get("nftables.service")
    used = service is not None and (service.starts_at_boot or service.runs)
    if used and isinstance(there, str):
        # `nft -f /etc/nftables.conf` by hand begins with `flush ruleset` on Debian, and would open the host.
        end = "" if there.endswith("\n") or not there else "\n"
        whole = there if INCLUDE in there.splitlines() else f"{there}{end}{INCLUDE}\n"
        files.append(File(NFTABLES_CONF, whole, _mode(facts, NFTABLES_CONF)))
    return files


def of_ufw(facts: Facts, profile: Profile, allowed: tuple[Opening, ...]) -> list[File]:
    """ufw's rules and defaults, all of which were read before. Raises NoSource."""
    limited = ssh_sources(profile)
    ssh = tuple(Opening("tcp", p, p, limited, "ssh") for p in sorted(ssh_ports(facts)))
    files = []
    for path in (*ufw.RULES.values(), ufw.DEFAULTS):
        there = facts.file(path)
        assert isinstance(there, str)
        family = next((f for f, rules in ufw.RULES.items() if rules == path), 0)
        whole = ufw.with_ours(there, family, (*ssh, *allowed)) if family else ufw.defaults(there)
        files.append(File(path, whole, _mode(facts, path)))
    return files + gone_unless(facts, RULES, None)


def gone_unless(facts: Facts, path: str, text: str | None, mode: str = "0644") -> list[File]:
    """The file, or its removal where it is there and not wanted (any more)."""
    if text is None and isinstance(facts.file(path), Absent):
        return []
    return [File(path, text, mode)]


def table(facts: Facts, profile: Profile, allowed: tuple[Opening, ...]) -> str:
    """Our table for this host. Raises NoSource."""
    limited, free = ssh_sources(profile), exempt(profile)
    ssh = nft.Ssh(
        tuple(sorted(ssh_ports(facts))),
        limited,
        int(profile["firewall_ssh_per_minute"]),
        BURST,
        free if limited is None else free.within(limited),
        operators(facts),
    )
    return nft.render(ssh, allowed, tuple(profile["firewall_interfaces"] or ()), guest_bridges(facts))


def operators(facts: Facts) -> tuple[str, ...]:
    """Addresses that this project was run from, this run's own among them."""
    there = facts.file(RULES)
    return latest(nft.operators(there) if isinstance(there, str) else (), operator(facts))


def latest(known: Sequence[str], me: str | None) -> tuple[str, ...]:
    """Operators with this run's own among them; the longest known go where they become too many."""
    if me is None or me in known:
        return tuple(known)
    return (*known, me)[-KEPT_OPERATORS:]


def ssh_sources(profile: Profile) -> Sources | None:
    """Who may come to sshd; None for everybody. Raises NoSource."""
    words = profile["firewall_ssh_from"] or ()
    return sources(words, profile["firewall_peers"] or {}) if words else None


def unit(commands: list[str]) -> str:
    lines = [f"{verb}={command}" for verb in ("ExecStart", "ExecReload") for command in commands]
    return UNIT.format(commands="\n".join(lines))


def _mode(facts: Facts, path: str) -> str:
    """The file's own mode, which stays."""
    return str(facts.recording.file(path).raw.get("mode") or "0644")
