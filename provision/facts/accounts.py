"""Login accounts: how each may get in and what it may become."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .answers import flag_of, int_of, quote, rows, text_of
from .known import Unknown
from .record import record

if TYPE_CHECKING:
    from ..recording.model import Answer


@record
class Account:
    """One account that can log in.

    `password` is set, locked or none; `sudo` is nopasswd, passwd or none. `keys` counts all
    keys that sshd would take, `forced_command_keys` those among them that only run one command;
    `keys_refused` says which files sshd ignores for their modes. `locked_by` tells `!` (sshd refuses
    the account) from `*` (only its password). `fingerprints` are those of keys without options,
    `bound_fingerprints` of the others; None where they were not recorded. What the recorder had no right
    to see is Unknown.
    """

    name: str
    uid: int
    shell: str
    password: str | Unknown
    sudo: str | Unknown
    keys: int | Unknown
    forced_command_keys: int | Unknown
    home: str = ""
    locked_by: str | None = None
    expired: bool = False
    keys_refused: tuple[str, ...] = ()
    certificate_authorities: int | None = None
    groups: tuple[str, ...] | None = None
    fingerprints: tuple[str, ...] | None = None
    bound_fingerprints: tuple[str, ...] | None = None


def accounts(answer: Answer) -> tuple[Account, ...] | Unknown:
    found = rows(answer, "accounts")
    if isinstance(found, Unknown):
        return found
    result = []
    for row in found:
        name, uid = text_of(row, "name"), int_of(row, "uid")
        if name is None or uid is None:
            return Unknown(f"accounts: an entry without name or uid: {quote(str(row))}", answer.item)

        def word(key: str, *allowed: str, row: dict[str, object] = row, name: str = name) -> str | Unknown:
            value = text_of(row, key)
            return value if value in allowed else Unknown(f"{key} of {name} could not be read", answer.item)

        def count(key: str, row: dict[str, object] = row, name: str = name) -> int | Unknown:
            value = int_of(row, key)
            return value if value is not None else Unknown(f"{key} of {name} is not known", answer.item)

        refused = row.get("keys_refused")
        result.append(
            Account(
                name,
                uid,
                text_of(row, "shell") or "",
                word("password", "set", "locked", "none"),
                word("sudo", "nopasswd", "passwd", "none"),
                count("keys"),
                count("forced_command_keys"),
                text_of(row, "home") or "",
                text_of(row, "locked_by"),
                flag_of(row, "expired") is True,
                tuple(str(why) for why in refused) if isinstance(refused, list) else (),
                int_of(row, "authorities"),
                _texts(row.get("groups")),
                _texts(row.get("fingerprints")),
                _texts(row.get("bound_fingerprints")),
            )
        )
    return tuple(result)


def others(answer: Answer) -> frozenset[str] | Unknown:
    """Names of the accounts that accounts() does not tell of."""
    found = rows(answer, "accounts.other")
    if isinstance(found, Unknown):
        return found
    names = [text_of(row, "name") for row in found]
    if None in names:
        return Unknown("accounts.other: an entry without name", answer.item)
    return frozenset(name for name in names if name is not None)


def _texts(value: object) -> tuple[str, ...] | None:
    return tuple(str(each) for each in value) if isinstance(value, list) else None
