"""Frozen dataclasses that cost little to define.

`dataclasses` compiles six methods for each class at import. The eighty classes of facts would make
every start of the command wait 50 ms for that; here they share methods that read the fields' names.
"""

from __future__ import annotations

from dataclasses import FrozenInstanceError, dataclass
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True)
def record(cls: type[T]) -> type[T]:
    """Like `@dataclass(frozen=True)`, for fields with plain defaults; `fields` and `replace` work on it."""
    made: Any = dataclass(init=False, repr=False, eq=False)(cls)
    for method in (__init__, __eq__, __hash__, __repr__, __setattr__, __delattr__):
        setattr(made, method.__name__, method)
    result: type[T] = made
    return result


def _values(self: Any) -> tuple[Any, ...]:
    return tuple(getattr(self, name) for name in self.__match_args__)


def __init__(self: Any, *values: Any, **named: Any) -> None:
    names = self.__match_args__
    state = dict(zip(names, values, strict=False))
    state.update(named)
    wrong = [name for name in state if name not in self.__dataclass_fields__]
    missing = [name for name in names if name not in state and not hasattr(self.__class__, name)]
    if wrong or missing or len(state) != len(values) + len(named):
        raise TypeError(
            f"{type(self).__name__}: wrong fields: {', '.join(wrong + missing) or 'too many values'}"
        )
    self.__dict__.update({name: state[name] if name in state else getattr(self, name) for name in names})


def __eq__(self: Any, other: object) -> bool:
    return type(self) is type(other) and _values(self) == _values(other)


def __hash__(self: Any) -> int:
    return hash((type(self), _values(self)))


def __repr__(self: Any) -> str:
    shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__match_args__)
    return f"{type(self).__qualname__}({shown})"


def __setattr__(self: Any, name: str, value: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def __delattr__(self: Any, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")
