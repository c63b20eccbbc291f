"""A fact is known, or unknown with the reason. `Unknown` is what every parser returns where it cannot tell."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

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


def then(value: T | Unknown, use: Callable[[T], U]) -> U | Unknown:
    """Apply `use` to a known value; an unknown one stays unknown with its own reason."""
    return value if isinstance(value, Unknown) else use(value)
