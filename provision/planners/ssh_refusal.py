"""When ssh_hardening must not run: what on the host would shut somebody out, or cannot be made key-only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..facts.known import Absent, Unknown
from . import confirm_seconds, ssh_admins
from .ssh_admission import shut_out
from .ssh_algorithms import openssh_version

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..facts import Facts
    from ..facts.accounts import Account
    from ..facts.firewall import Socket
    from ..facts.sshd import Sshd
    from ..profile.model import Profile

MAIN = "/etc/ssh/sshd_config"
SSHD_UNITS = ("ssh.service", "sshd.service", "ssh.socket", "sshd.socket")
# The first release whose sshd_config knows Include (https://www.openssh.com/txt/release-8.2).
INCLUDE_SINCE = (8, 2)


def refusal(facts: Facts, profile: Profile) -> str | None:
    """Why nothing may be changed, and what to do; None where nothing stands against it."""
    sshd = facts.sshd
    if isinstance(sshd, Absent):
        return "there is no sshd on this host."
    if isinstance(sshd, Unknown):
        return f"sshd's configuration could not be read: {sshd.reason}."
    reasons = (*_patience(profile), *_configuration(facts, sshd), *_services(facts), *_operator(facts, sshd))
    if root_login(profile) == "no":
        reasons = (*reasons, *_root(facts, sshd, profile))
    return next(iter((*reasons, *ssh_admins.refusals(facts, profile))), None)


def root_login(profile: Profile) -> str:
    """`no` or `prohibit-password`; a bare `no` in YAML arrives as False."""
    value = profile["ssh_hardening_root_login"]
    return "no" if value is False else str(value)


def _patience(profile: Profile) -> Iterator[str]:
    if too := confirm_seconds.refusal(profile["ssh_hardening_confirm_seconds"]):
        yield f"ssh_hardening_confirm_seconds: {too}."


def _configuration(facts: Facts, sshd: Sshd) -> Iterator[str]:
    broken = next((case for case in sshd.cases if case.rc != 0), None)
    if broken:
        yield f"sshd's configuration is broken before any change ({broken.error}). Mend it first."
    short = next((case for case in sshd.cases if case.rc == 0 and case.lacks), None)
    if short:
        yield f"sshd -T for {short.user} did not tell {', '.join(short.lacks)}; that is not enough."
    main = sshd.files[0][0] if sshd.files else "nothing"
    if main != MAIN:
        yield f"sshd reads {main} instead of {MAIN}; only the latter is looked after."
    packages = facts.packages
    server = None if isinstance(packages, Unknown) else packages.get("openssh-server")
    version = openssh_version(server.version) if server else None
    if version and version < INCLUDE_SINCE:
        yield f"OpenSSH {version[0]}.{version[1]} reads no drop-ins; they came with 8.2."
    for case in sshd.cases:
        methods = case.options.get("authenticationmethods", ("any",))
        ways = [way for value in methods for way in value.split()]
        if "any" not in ways and not any(set(way.split(",")) <= {"publickey"} for way in ways):
            yield (
                f"AuthenticationMethods {' '.join(ways)} (for {case.user}) asks for more than a key; without "
                "passwords and keyboard-interactive nobody would get in. Allow `publickey` alone there first."
            )
            return


def _services(facts: Facts) -> Iterator[str]:
    units = facts.units
    if isinstance(units, Absent):
        yield "systemd does not run on this host, and its timer is what puts a bad change back."
    elif isinstance(units, Unknown):
        yield f"which service runs sshd is not known: {units.reason}."
    elif not any(
        units[name].runs
        for name in ("ssh.service", "sshd.service", "ssh.socket", "sshd.socket")
        if name in units
    ):
        yield "no service of systemd runs sshd, so it cannot be told to read its files again."
    sockets, sshd = facts.sockets, facts.sshd
    if (
        isinstance(sockets, Unknown)
        or isinstance(sshd, Unknown | Absent)
        or isinstance(units, Unknown | Absent)
    ):
        return
    if any(units[name].runs for name in ("ssh.socket", "sshd.socket") if name in units):
        return  # the socket holds the port, whatever the files say
    lost = listening_ports(sockets) - configured_ports(sshd)
    if lost:
        yield (
            f"sshd listens on port {_list(lost)}, and its files say {_list(configured_ports(sshd))}: "
            "somebody changed the port and did not reload. Reload on purpose first, or take that change back."
        )


def listening_ports(sockets: tuple[Socket, ...]) -> set[int]:
    """Ports on which sshd, or systemd for it, listens for others; forwarded ports of a session are none."""
    return {
        s.port
        for s in sockets
        if s.proto == "tcp"
        and not s.is_local
        and (s.program == "sshd" or (s.unit or "").startswith(("ssh.", "sshd.")))
        and not (s.unit or "").endswith(".scope")
    }


def configured_ports(sshd: Sshd) -> set[int]:
    return {int(port) for case in sshd.cases[:1] for port in case.options.get("port", ()) if port.isdigit()}


def _operator(facts: Facts, sshd: Sshd) -> Iterator[str]:
    me = sshd.operator
    if me is None:
        return
    account = _account(facts, me.user)
    groups = account.groups if account else None
    for case in sshd.cases:
        if case.user == me.user and (me.addr is None or case.addr == me.addr):
            rule = shut_out(case.options, me.user, me.addr, groups)
            if rule:
                yield (
                    f"`{rule}` in sshd's files shuts out {me.user}, who is logged in. It is not in effect "
                    f"yet, and a reload would make it so. Let {me.user} in there first."
                )
    if account is None or isinstance(account.keys, Unknown) or _other_keys(sshd):
        return
    if account.keys == 0 and not account.certificate_authorities:
        why = "; ".join(account.keys_refused)
        yield (
            f"{me.user} has no key on this host, so a password is the only way in. "
            + (f"sshd ignores what is there: {why}." if why else "Put a key there first.")
        )


def _root(facts: Facts, sshd: Sshd, profile: Profile) -> Iterator[str]:
    accounts = facts.accounts
    if isinstance(accounts, Unknown):
        yield f"root's login cannot be closed: who else could get in is not known ({accounts.reason})."
        return
    others = [a.name for a in accounts if a.uid != 0 and administers(a, locked=locks(sshd))]
    if not others:
        to_be = [a["name"] for a in ssh_admins.named(profile) if a["sudo"]]
        yield "root's login cannot be closed: no other account has a key and sudo." + (
            f" Run this with ssh_hardening_root_login=prohibit-password first, which makes {to_be[0]} one; "
            f"then log in as {to_be[0]} to close root's."
            if to_be
            else " Name one in ssh_hardening_admins."
        )
    elif sshd.operator and sshd.operator.user == "root":
        yield (
            "root's login cannot be closed by a run that logs in as root. "
            f"Log in as {others[0]}: that proves that there is another way in."
        )


def locks(sshd: Sshd) -> bool:
    """Whether sshd refuses accounts whose password begins with `!`: it does so where it does not use PAM
    (allowed_user in OpenSSH's auth.c). Cloud images and Ansible make their accounts that way.
    """
    return any(case.option("usepam") == "no" for case in sshd.cases)


def administers(account: Account, *, locked: bool) -> bool:
    """Whether the account has a key that is not bound to one command, and may become root.

    `locked`: a password that begins with `!` keeps the account out, as locks() tells.
    """
    keys, forced = account.keys, account.forced_command_keys
    if isinstance(keys, Unknown) or isinstance(forced, Unknown) or isinstance(account.sudo, Unknown):
        return False
    usable = keys - forced > 0 or bool(account.certificate_authorities)
    return (
        usable
        and not account.expired
        and not (locked and account.locked_by == "!")
        and (account.uid == 0 or account.sudo != "none")
    )


def _other_keys(sshd: Sshd) -> bool:
    """Whether keys come from somewhere that counting key files does not see."""
    quiet = ("none", "")
    return any(
        case.option(keyword) not in (None, *quiet)
        for case in sshd.cases
        for keyword in ("authorizedkeyscommand", "trustedusercakeys")
    )


def _account(facts: Facts, name: str) -> Account | None:
    accounts = facts.accounts
    return None if isinstance(accounts, Unknown) else next((a for a in accounts if a.name == name), None)


def _list(ports: set[int]) -> str:
    return ", ".join(str(port) for port in sorted(ports))
