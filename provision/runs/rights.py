"""What is said of a login that got no root rights: sudo's words, and the option that helps against them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provision.errors import Unreached
from provision.facts.known import Absent, Unknown

if TYPE_CHECKING:
    from provision.facts import Facts


def without_root(facts: Facts) -> Unreached:
    """Who has no root rights there, and why; for a recording that was not made as root."""
    rights = facts.rights
    user, said = ("the login user", None) if isinstance(rights, Unknown) else (rights.user, rights.says)
    return Unreached(
        f"{user} has no root rights there{f' ({said})' if said else ''}", do=_way_to_root(said or "")
    )


def unseen(facts: Facts) -> str:
    """Why an audit could not see what only root may read; empty where it could, or where that is not known.

    Where no Python was found, that is what kept it from seeing: sudo was not tried.
    """
    rights = facts.rights
    if facts.recording.as_root or isinstance(rights, Unknown) or isinstance(facts.python, Absent):
        return ""
    return without_root(facts).reason


def _way_to_root(said: str) -> str:
    """What helps against sudo's words; a user without any sudo needs another login, not a password."""
    if "not accepted" in said:
        return "give sudo's password, which is the login user's own, with --become-password-fd"
    if "password is required" in said:
        return "give sudo's password with --ask-become-pass or --become-password-fd"
    return "log in as root, or as a user whom sudo makes root"
