"""Login accounts: how each may get in and what it may become."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .answers import int_of, quote, rows, text_of
from .known import Unknown

if TYPE_CHECKING:
    from ..recording.model import Answer


@dataclass(frozen=True)
class Account:
    """One account that can log in.

    `password` is set, locked or none; `sudo` is nopasswd, passwd or none. `keys` counts keys that
    log in, `forced_command_keys` those that only run one command. What the recorder had no right
    to see is Unknown.
    """

    name: str
    uid: int
    shell: str
    password: str | Unknown
    sudo: str | Unknown
    keys: int | Unknown
    forced_command_keys: int | Unknown


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

        result.append(
            Account(
                name,
                uid,
                text_of(row, "shell") or "",
                word("password", "set", "locked", "none"),
                word("sudo", "nopasswd", "passwd", "none"),
                count("keys"),
                count("forced_command_keys"),
            )
        )
    return tuple(result)
