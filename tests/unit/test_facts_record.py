"""Records behave as frozen dataclasses do."""

from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError, fields, is_dataclass, replace

import pytest

from provision.facts.record import record


@record
class Pair:
    left: int
    right: str = "r"

    @property
    def both(self) -> str:
        return f"{self.left}{self.right}"


def test_values_and_defaults() -> None:
    assert (Pair(1).left, Pair(1).right, Pair(1, "x").both, Pair(right="y", left=2).both) == (
        1,
        "r",
        "1x",
        "2y",
    )
    assert repr(Pair(1)) == "Pair(left=1, right='r')"


def test_equality_is_by_kind_and_values() -> None:
    @record
    class Other:
        left: int
        right: str

    assert Pair(1) == Pair(1, "r")
    assert Pair(1) != Pair(2)
    assert Pair(1) != Other(1, "r")
    assert len({Pair(1), Pair(1, "r"), Pair(2)}) == 2


def test_it_is_frozen() -> None:
    pair = Pair(1)
    with pytest.raises(FrozenInstanceError):
        pair.left = 2  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        del pair.left
    assert pair.left == 1


def test_it_is_a_dataclass() -> None:
    assert is_dataclass(Pair)
    assert [f.name for f in fields(Pair)] == ["left", "right"]
    assert replace(Pair(1), right="z") == Pair(1, "z")
    assert copy.deepcopy(Pair(1)) == Pair(1)
    assert pickle.loads(pickle.dumps(Pair(1))) == Pair(1)
    match Pair(5):
        case Pair(left, "r"):
            assert left == 5


@pytest.mark.parametrize(
    "call", [lambda: Pair(), lambda: Pair(1, "r", 2), lambda: Pair(1, middle=3), lambda: Pair(1, left=2)]
)
def test_wrong_fields_are_named(call) -> None:
    with pytest.raises(TypeError, match="Pair: wrong fields"):
        call()
