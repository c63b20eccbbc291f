"""Controls of the way in: who gets in with a key, and where sshd listens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..facts.known import Absent, Unknown
from ..planners.ssh_admission import shut_out
from ..planners.ssh_refusal import administers, configured_ports, listening_ports
from .model import Judged, Severity, Verdict, control, failed, passed, skipped, unknown

if TYPE_CHECKING:
    from ..facts.accounts import Account
    from ..facts.sshd import Sshd


@control(
    "ssh.admin-key",
    "Somebody who may become root gets in with a key",
    severity=Severity.HIGH,
    required=True,
)
def admin_key(host: Judged) -> Verdict:
    sshd, accounts = host.facts.sshd, host.facts.accounts
    if isinstance(sshd, Absent):
        return skipped("there is no sshd on this host")
    if isinstance(sshd, Unknown):
        return unknown(sshd)
    if isinstance(accounts, Unknown):
        return unknown(accounts)
    unseen = [a.name for a in accounts if isinstance(a.keys, Unknown) or isinstance(a.sudo, Unknown)]
    found = [a for a in accounts if administers(a)]
    admitted = [a.name for a in found if (reason := _refused(sshd, a)) is None]
    if admitted:
        return passed(", ".join(admitted))
    if unseen:
        return unknown(f"keys or rights of {', '.join(unseen)} could not be read")
    evidence = [f"{a.name}: {reason}" for a in found if (reason := _refused(sshd, a))]
    evidence += [f"{a.name}: {why}" for a in accounts for why in a.keys_refused]
    return failed(
        "an account with a key and the right to become root",
        "none",
        advice="Install a public key for root or for an account with sudo before passwords are closed.",
        evidence=tuple(evidence),
    )


@control(
    "ssh.port",
    "sshd listens where its configuration says",
    severity=Severity.MEDIUM,
)
def port(host: Judged) -> Verdict:
    sshd, sockets = host.facts.sshd, host.facts.sockets
    if isinstance(sshd, Absent):
        return skipped("there is no sshd on this host")
    if isinstance(sshd, Unknown):
        return unknown(sshd)
    if isinstance(sockets, Unknown):
        return unknown(sockets)
    configured, listening = configured_ports(sshd), listening_ports(sockets)
    expected = _list(configured)
    if not configured:
        return unknown(f"sshd -T names no port: {sshd.cases[0].error}")
    if not listening and any(s.program is None for s in sockets):
        return unknown("which program listens on which port can be seen by root only", expected=expected)
    if configured == listening:
        return passed(expected, expected=expected)
    return failed(
        expected,
        _list(listening) if listening else "sshd listens for nobody but this host itself",
        advice="Where systemd's ssh.socket holds the port, the port stands in that unit (`systemctl edit "
        "ssh.socket`); elsewhere sshd was not reloaded since the port was changed.",
    )


def _refused(sshd: Sshd, account: Account) -> str | None:
    """Why sshd lets the account in from nowhere; None where it does from somewhere."""
    reason: str | None = None
    for case in sshd.cases:
        if case.user != account.name or not case.options:
            continue
        if account.uid == 0 and case.option("permitrootlogin") in ("no", "forced-commands-only"):
            reason = f"PermitRootLogin {case.option('permitrootlogin')}"
        elif case.option("pubkeyauthentication") != "yes":
            reason = "PubkeyAuthentication no"
        else:
            reason = shut_out(case.options, account.name, case.addr or None, account.groups)
        if reason is None:
            return None
    return reason or "sshd was not asked about it"


def _list(ports: set[int]) -> str:
    return ", ".join(str(number) for number in sorted(ports))
