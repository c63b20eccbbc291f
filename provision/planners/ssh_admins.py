"""Administrators whom the profile names: accounts, keys, the right to become root. Nothing is taken away.

sudo asks for no password: the accounts have none, so there would be none to ask for. The price is that
whoever has such a key is root there; a passphrase or a hardware key is what stands before it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..facts.known import Absent, Unknown
from ..profile.administrators import VARIABLE, expanded, fingerprint
from .ssh_admission import shut_out
from .wanted import File, Why

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..facts import Facts
    from ..facts.accounts import Account
    from ..profile.model import Profile

# sudo reads these in lexical order, and the last rule that matches holds (sudoers(5)): ours comes last.
SUDOERS = "/etc/sudoers.d/zz-gpu-provision"
SUDOERS_HEAD = """\
# Written by gpu-provision (role ssh_hardening, ssh_hardening_admins). No password is asked for, as these
# accounts have none: whoever holds one of their keys is root here.
"""
SYSTEM_UIDS = 1000


@dataclass(frozen=True)
class Administrator:
    """One account as it is wanted. `missing` are the keys that it does not have yet.

    `create` is False for an account that is there: it keeps its password, shell, home and other keys.
    """

    name: str
    keys: tuple[str, ...]
    missing: tuple[str, ...]
    sudo: bool
    create: bool


def administrators(facts: Facts, profile: Profile) -> tuple[Administrator, ...]:
    """Whom the profile names, beside what the host has of them."""
    return tuple(
        Administrator(
            entry["name"],
            tuple(entry["keys"]),
            missing_keys(account, tuple(entry["keys"])),
            entry["sudo"],
            account is None,
        )
        for entry in named(profile)
        for account in (account_of(facts, entry["name"]),)
    )


def named(profile: Profile) -> list[dict[str, Any]]:
    """The list of the profile, each key as one line."""
    return expanded(profile[VARIABLE] or ())


def account_of(facts: Facts, name: str) -> Account | None:
    accounts = facts.accounts
    return None if isinstance(accounts, Unknown) else next((a for a in accounts if a.name == name), None)


def missing_keys(account: Account | None, keys: tuple[str, ...]) -> tuple[str, ...]:
    """Those of the keys that sshd would not take for the account now."""
    there = (account.fingerprints or ()) if account else ()
    return tuple(key for key in keys if fingerprint(key) not in there)


def sudoers(profile: Profile) -> File:
    """The file with the rules; it must not be there where no administrator has sudo."""
    rules = [f"{a['name']} ALL=(ALL:ALL) NOPASSWD: ALL\n" for a in named(profile) if a["sudo"]]
    return File(SUDOERS, SUDOERS_HEAD + "".join(rules) if rules else None, "0440")


def packages(facts: Facts, profile: Profile) -> tuple[str, ...]:
    """sudo, where a rule for it is wanted and a minimal image came without."""
    if sudoers(profile).text is None or isinstance(facts.packages, Unknown):
        return ()
    return () if facts.packages.get("sudo") else ("sudo",)


def steps(admins: tuple[Administrator, ...]) -> tuple[str, ...]:
    """What is done to accounts, in words for the plan."""
    made = [f"create the account {a.name}, with a home and without a password" for a in admins if a.create]
    return (*made, *(f"add to {a.name} the key {_shown(key)}" for a in admins for key in a.missing))


def why(admins: tuple[Administrator, ...]) -> tuple[Why, ...]:
    ruled = ", ".join(a.name for a in admins if a.sudo)
    if not ruled:
        return ()
    says = f"{ruled} may become root without a password: whoever holds such a key is root"
    return (Why(SUDOERS, says, "sudoers(5)"),)


def refusals(facts: Facts, profile: Profile) -> Iterator[str]:
    """Why the accounts cannot be made as they are wanted, and what to do."""
    wanted = named(profile)
    if not wanted:
        yield from _of_the_operator(facts, profile)
        return
    if isinstance(facts.accounts, Unknown):
        yield f"which accounts there are is not known: {facts.accounts.reason}."
        return
    for admin in wanted:
        name, account = str(admin["name"]), account_of(facts, str(admin["name"]))
        if account is None:
            yield from _of_a_new_one(facts, name)
            continue
        if account.uid < SYSTEM_UIDS:
            yield f"{name} is an account of the system here (uid {account.uid}). Choose another name."
        if account.expired:
            yield f"the account {name} is expired, so sshd refuses it. `chage -E -1 {name}` ends that."
        if account.fingerprints is None:
            yield f"which keys {name} has could not be read."
        bound = account.bound_fingerprints or ()
        if options := [key for key in admin["keys"] if fingerprint(key) in bound]:
            yield (
                f"the key {_shown(options[0])} stands in {name}'s file with options before it, and the first "
                "line that has a key counts. Take the options, or that line, away there first."
            )
    for admin in wanted:
        yield from _of_sshd(facts, str(admin["name"]))
    yield from _of_the_operator(facts, profile)


def _of_a_new_one(facts: Facts, name: str) -> Iterator[str]:
    others = facts.other_accounts
    if isinstance(others, Unknown):
        yield f"whether {name} is the name of an account of the system is not known: {others.reason}."
    elif name in others:
        yield f"{name} is an account of the system here, or has no shell to log in to. Choose another name."


def _of_sshd(facts: Facts, name: str) -> Iterator[str]:
    """What in sshd's files would shut the account out from where we come from."""
    sshd = facts.sshd
    if isinstance(sshd, Unknown | Absent) or not sshd.cases:
        return
    account = account_of(facts, name)
    groups = account.groups if account else (name,)
    mine = next((case for case in sshd.cases if case.user == name), None)
    options = (mine or sshd.cases[-1]).options
    if rule := shut_out(options, name, sshd.operator.addr if sshd.operator else None, groups):
        yield f"`{rule}` in sshd's files would not let {name} in. Let {name} in there first."
    if options.get("authorizedkeysfile", ("",))[0] == "none":
        yield "sshd reads no key files here (AuthorizedKeysFile none)."
    if account and account.locked_by == "!" and options.get("usepam", ("yes",))[0] == "no":
        yield f"{name} is locked, and sshd without PAM refuses it. `usermod -p '*' {name}` ends that."


def _of_the_operator(facts: Facts, profile: Profile) -> Iterator[str]:
    """The rule by which we are root ourselves is not taken away under us."""
    sshd, text = facts.sshd, facts.file(SUDOERS)
    if isinstance(sshd, Unknown | Absent) or sshd.operator is None or not isinstance(text, str):
        return
    me = sshd.operator.user
    now = [line.split()[0] for line in text.splitlines() if line.strip() and not line.startswith("#")]
    if me in now and not any(a["name"] == me and a["sudo"] for a in named(profile)):
        yield (
            f"{me} is logged in and is root by {SUDOERS}, where the profile no longer has {me}. Keep {me} in "
            f"{VARIABLE}, or run this as another administrator."
        )


def _shown(key: str) -> str:
    """A key for a person: its fingerprint and its comment."""
    return " ".join([fingerprint(key), *key.split()[2:]])
