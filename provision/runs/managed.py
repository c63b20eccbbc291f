"""A host as a run manages it: where it is, what it is meant to be, and the secrets that lead in."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from provision.profile.model import Profile
    from provision.transport.target import Target


@dataclass(frozen=True)
class Secrets:
    """Passwords that the user gave. They are never printed, not even by an error that shows this object.

    `ask` puts the question for the login's password to the person who is there, None where nobody is; an
    empty answer gives none.
    """

    login: str | None = field(default=None, repr=False)
    sudo: str | None = field(default=None, repr=False)
    ask: Callable[[str], str] | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True)
class Managed:
    """One host of a run. `groups` are those of the inventory that it is in."""

    target: Target
    profile: Profile
    groups: tuple[str, ...] = ()
    secrets: Secrets = Secrets()

    @property
    def name(self) -> str:
        return self.target.name
