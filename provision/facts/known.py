"""A fact is known, or unknown with the reason: every parser returns `Unknown` where it cannot tell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, TypeAlias, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
U = TypeVar("U")


@dataclass(frozen=True)
class Unknown:
    """A fact that could not be told, with the reason in words (the tool's own where it said something).

    `item` names the question whose answer was wanting. An Unknown has no truth value: a caller that
    forgets to look for it gets an error, not a healthy host.
    """

    reason: str
    item: str = ""

    def __bool__(self) -> bool:
        raise TypeError(f"an unknown fact was used as a truth value: {self.reason}")


@dataclass(frozen=True)
class Unsupported(Unknown):
    """Unknown because the tool itself says that there is no such value: N/A, not supported, deprecated.

    `deprecated` is True where the driver dropped the function ("Requested functionality has been
    deprecated"): no such host will ever answer, and another way has to be taken.
    """

    deprecated: bool = False


class Absent:
    """Known not to be there. There is one instance, ABSENT; it is false in a condition."""

    _one: ClassVar[Absent | None] = None

    def __new__(cls) -> Absent:
        if cls._one is None:
            cls._one = super().__new__(cls)
        return cls._one

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT = Absent()


Maybe: TypeAlias = T | Unknown
"""A value or Unknown."""


def then(value: T | Unknown, use: Callable[[T], U]) -> U | Unknown:
    """Apply `use` to a known value; an unknown one stays unknown with its own reason."""
    return value if isinstance(value, Unknown) else use(value)
