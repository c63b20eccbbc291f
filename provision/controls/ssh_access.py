"""Controls of the way in: who gets in with a key, and where sshd listens."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from ..facts.known import Absent, Unknown
from ..planners import ssh_admins
from ..planners.ssh_admission import shut_out
from ..planners.ssh_refusal import administers, configured_ports, listening_ports, locks
from .model import Judged, Severity, Verdict, control, failed, passed, skipped, unknown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

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
    if not any(case.options for case in sshd.cases):
        return unknown(f"sshd -T tells nothing: {sshd.cases[0].error if sshd.cases else 'it was not asked'}")
    unseen = [a.name for a in accounts if isinstance(a.keys, Unknown) or isinstance(a.sudo, Unknown)]
    found = [a for a in accounts if administers(a, locked=locks(sshd))]
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
    "ssh.administrators",
    "Administrators of the profile have their accounts, keys and sudo",
    severity=Severity.HIGH,
    required=True,
    role="ssh_hardening",
)
def administrators(host: Judged) -> Verdict:
    wanted, rules = ssh_admins.named(host.profile), ssh_admins.sudoers(host.profile)
    written, accounts = host.facts.file(ssh_admins.SUDOERS), host.facts.accounts
    if isinstance(host.facts.sshd, Absent):
        return skipped("there is no sshd on this host")
    if isinstance(host.facts.sshd, Unknown):
        return unknown(host.facts.sshd)
    if not wanted and isinstance(written, Unknown | Absent):
        # A host where nobody was ever named has no such file; an old recording did not ask for it.
        return skipped("the profile names no administrator")
    if isinstance(written, Unknown):
        return unknown(written)
    if isinstance(accounts, Unknown):
        return unknown(accounts)
    bad = [line for admin in wanted for line in _lacks(host, admin)]
    if (None if isinstance(written, Absent) else written) != rules.text:
        bad.append(f"{ssh_admins.SUDOERS} is not as the profile has it")
    if bad:
        return failed(", ".join(a["name"] for a in wanted) or "none", bad[0], evidence=tuple(bad))
    unread = [a["name"] for a in wanted if a["sudo"] and not _sudo_known(host, a["name"])]
    if unread:
        return unknown(f"what sudo gives {', '.join(unread)} could not be read")
    return passed(", ".join(a["name"] for a in wanted) or "none")


def _sudo_known(host: Judged, name: str) -> bool:
    account = ssh_admins.account_of(host.facts, name)
    return account is not None and not isinstance(account.sudo, Unknown)


def _lacks(host: Judged, admin: Mapping[str, Any]) -> Iterator[str]:
    """What an administrator of the profile does not have on the host."""
    name = admin["name"]
    account = ssh_admins.account_of(host.facts, name)
    if account is None:
        yield f"{name} is no account"
        return
    missing = ssh_admins.missing_keys(account, tuple(admin["keys"]))
    if missing:
        yield f"{name} lacks {len(missing)} of {len(admin['keys'])} keys"
    yield from (f"{name}: sshd ignores what is in {why}" for why in account.keys_refused if missing)
    if admin["sudo"] and account.sudo in ("none", "passwd"):
        yield f"{name} may not become root" + (" without a password" if account.sudo == "passwd" else "")


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
        elif (methods := _without_key(case.options)) is not None:
            reason = f"AuthenticationMethods {methods}: none of these ways takes a key"
        else:
            reason = shut_out(case.options, account.name, case.addr or None, account.groups)
        if reason is None:
            return None
    return reason or "sshd was not asked about it"


def _without_key(options: Mapping[str, tuple[str, ...]]) -> str | None:
    """AuthenticationMethods where no way of logging in that it lists has a key in it (sshd_config(5))."""
    ways = [way for value in options.get("authenticationmethods", ()) for way in value.split()]
    with_key = any(way == "any" or "publickey" in re.split("[,:]", way) for way in ways)
    return " ".join(ways) if ways and not with_key else None


def _list(ports: set[int]) -> str:
    return ", ".join(str(number) for number in sorted(ports))
