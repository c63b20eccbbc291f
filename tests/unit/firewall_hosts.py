"""Recordings of hosts as far as the packet filter goes, made from a few words; also after the role."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ssh_hosts import SSHD_ON_22, facts

from provision.controls import all_controls
from provision.controls.model import Finding, Judged
from provision.facts.known import Unknown
from provision.planners import firewall as planner
from provision.planners.firewall_files import RULES, SERVICE
from provision.profile.declared import declared
from provision.profile.model import Profile

if TYPE_CHECKING:
    from provision.facts import Facts
    from provision.planners.firewall import WantedFirewall

NOWHERE = Unknown("not resolved")
SSH_SERVICE = """\
Id=ssh.service
Names=ssh.service sshd.service
LoadState=loaded
ActiveState=active
UnitFileState=enabled
"""
OURS = f"Id={SERVICE}\nLoadState=loaded\nActiveState=active\nUnitFileState=enabled\n"
WRITTEN = (
    RULES, "/etc/nftables.conf", "/etc/systemd/system/gpu-provision-firewall.service",
    "/usr/local/lib/gpu-provision/docker-user", "/etc/fail2ban/jail.d/zz-gpu-provision.local",
    "/etc/fail2ban/jail.d/00-gpu-provision.conf", "/etc/fail2ban/jail.conf",
    "/etc/ufw/ufw.conf",
)  # fmt: skip
UFW_RULES = "*filter\n:ufw{six}-user-input - [0:0]\n### RULES ###\n\n{theirs}### END RULES ###\n\nCOMMIT\n"
THEIRS = (
    "### tuple ### allow tcp 7777 {any} any {any} in\n"
    "-A ufw{six}-user-input -p tcp --dport 7777 -j ACCEPT\n\n"
)
UFW = {
    "file:/etc/ufw/ufw.conf": {"text": "ENABLED=yes\nLOGLEVEL=low\n"},
    "file:/etc/default/ufw": {"text": 'IPV6=yes\nDEFAULT_INPUT_POLICY="DROP"\n', "mode": "0644"},
    "file:/etc/ufw/user.rules": {
        "text": UFW_RULES.format(six="", theirs=THEIRS.format(six="", any="0.0.0.0/0")), "mode": "0640"},
    "file:/etc/ufw/user6.rules": {
        "text": UFW_RULES.format(six="6", theirs=THEIRS.format(six="6", any="::/0")), "mode": "0640"},
}  # fmt: skip


def loaded(ruleset: str = "") -> dict[str, Any]:
    """The item `firewall` where nft lists this."""
    return {"firewall": {"rules": [{"argv": ["nft", "list", "ruleset"], "rc": 0, "stdout": ruleset}]}}


def heard(*sockets: tuple[str, int, str | None]) -> list[dict[str, Any]]:
    """sshd on port 22, and sockets of (protocol, port, program) beside it."""
    rows = [
        {"proto": p, "address": "0.0.0.0", "port": n, "program": by, "unit": None} for p, n, by in sockets
    ]
    return [SSHD_ON_22, *rows]


def interface(name: str, kind: str = "ethernet") -> dict[str, Any]:
    """Items that show one interface of a kind."""
    link = {"ifname": name, "flags": ["UP"], "operstate": "UP", "address": "02:00:00:00:00:01", "mtu": 1500}
    if kind != "ethernet":
        link["linkinfo"] = {"info_kind": kind}
    return {
        "ip.addresses": {"rc": 0, "stdout": json.dumps([{**link, "addr_info": []}])},
        "ip.links": {"rc": 0, "stdout": json.dumps([link])},
        "net": {"rc": 0, "stdout": "[]"},
    }


def host(
    *,
    units: str = SSH_SERVICE,
    sockets: list[dict[str, Any]] | None = None,
    items: dict[str, Any] | None = None,
    packages: tuple[str, ...] = (),
) -> Facts:
    """A Debian 12 host without any rule, but for what is said."""
    known: dict[str, Any] = {f"file:{path}": {"missing": True} for path in WRITTEN}
    known |= {"units.files": {"rc": 0, "stdout": "rpcbind.socket enabled enabled\n"}}
    known |= {"units.running": {"rc": 0, "stdout": "rpcbind.service loaded active running x\n"}}
    return facts(
        units=units, sockets=sockets, packages=packages, items={**known, **loaded(), **(items or {})}
    )


def profile(**variables: Any) -> Profile:
    defaults = {name: variable.default for name, variable in declared().items()}
    return Profile("test", {**defaults, **variables}, variables)


def wanted(facts_: Facts, **variables: Any) -> WantedFirewall:
    return planner.wanted(facts_, profile(**variables), NOWHERE)


def converged(
    *, units: str = SSH_SERVICE, items: dict[str, Any] | None = None, docker: str = "", **variables: Any
) -> Facts:
    """The same host after the role: its files are there, and nft lists what they say."""
    before = host(units=units, items=items, packages=("docker.io",) if docker else ())
    plan = wanted(before, **variables)
    assert plan.refused is None, plan.refused
    texts = {f.path: f.text for f in plan.files}
    now = {
        f"file:{p}": {"text": t, "mode": "0644"} if t is not None else {"missing": True}
        for p, t in texts.items()
    }
    table = (texts[RULES] or "").split("\n", 5)[5]
    return host(
        units=f"{units}\n{OURS}",
        items={**(items or {}), **now, **loaded(table + docker)},
        packages=("docker.io",) if docker else (),
    )


def findings(facts_: Facts, **variables: Any) -> dict[str, Finding]:
    """All findings about the firewall."""
    judged = Judged(facts_, profile(**variables), NOWHERE)
    return {n: c.find(judged) for n, c in all_controls().items() if n.startswith("firewall.")}
