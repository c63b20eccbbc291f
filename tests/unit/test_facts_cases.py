"""Each file below tests/recordings/facts is one case: the raw answers to some items and the fact that they mean.

Adding a case is adding a file. `fact` is an attribute of Facts, or a call of one (`file /etc/fstab`).
`expected` is matched in part: a mapping names attributes, properties, keys or methods of the fact
(`gpus.0.name`, `link GPU0 GPU1`), a list is matched whole. `unknown: TEXT` is an Unknown whose reason
has the text; `unsupported: TEXT` one that says there is no such value; `absent: true` is ABSENT.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from provision.facts import Facts
from provision.facts.known import ABSENT, Unknown, Unsupported
from provision.recording.model import Recording

ROOT = Path(__file__).parent.parent / "recordings" / "facts"
CASES = sorted(ROOT.rglob("*.yml"))


def facts_of(items: dict[str, Any]) -> Facts:
    return Facts(Recording("case", "2026-11-30T12:00:00Z", True, 0.1, items))


def get(value: Any, path: str) -> Any:
    """An attribute, key or index of a value, or of what it holds; a path with blanks calls a method."""
    name, *arguments = path.split(" ")
    if arguments:
        return getattr(value, name)(*arguments)
    for step in path.split("."):
        if isinstance(value, (list, tuple)):
            value = value[int(step)]
        elif isinstance(value, dict):
            value = value[step] if step in value else value[int(step)]
        else:
            value = getattr(value, step)
    return value


def check(actual: Any, expected: Any, where: str) -> None:
    if isinstance(expected, dict):
        for key, want in expected.items():
            check_key(actual, str(key), want, where)
    elif isinstance(expected, list):
        if isinstance(actual, (set, frozenset)):
            assert sorted(actual) == sorted(expected), where
            return
        assert isinstance(actual, (list, tuple)), f"{where}: {actual!r}"
        assert len(actual) == len(expected), f"{where}: {actual!r}"
        for index, want in enumerate(expected):
            check(actual[index], want, f"{where}[{index}]")
    else:
        assert type(actual) is type(expected) or isinstance(actual, str), (
            f"{where}: {actual!r}, not {expected!r}"
        )
        assert actual == expected, f"{where}: {actual!r}, not {expected!r}"


def check_key(actual: Any, key: str, want: Any, where: str) -> None:
    if key in ("unknown", "unsupported"):
        assert isinstance(actual, Unsupported if key == "unsupported" else Unknown), f"{where}: {actual!r}"
        assert want in actual.reason, f"{where}: {actual.reason}"
        assert actual.item, f"{where}: an Unknown that names no item"
    elif key == "absent":
        assert actual is ABSENT, f"{where}: {actual!r}"
    elif isinstance(actual, dict) and key in actual:
        check(actual[key], want, f"{where}[{key}]")
    else:
        check(get(actual, key), want, f"{where}.{key}")


@pytest.mark.parametrize("path", CASES, ids=lambda path: str(path.relative_to(ROOT).with_suffix("")))
def test_case(path: Path) -> None:
    case = yaml.safe_load(path.read_text(encoding="utf-8"))
    facts = facts_of(case["items"])
    check(get(facts, case["fact"]), case["expected"], case["fact"])


def names_of_facts() -> list[str]:
    return [name for name in dir(Facts) if not name.startswith("_") and name not in ("file", "files")]


def test_every_fact_has_a_case() -> None:
    covered = {
        yaml.safe_load(path.read_text(encoding="utf-8"))["fact"].split(" ")[0].split(".")[0] for path in CASES
    }
    assert not set(names_of_facts()) - covered


@pytest.mark.parametrize("name", names_of_facts())
def test_what_was_not_asked_is_unknown(name: str) -> None:
    value = getattr(facts_of({}), name)
    assert isinstance(value, Unknown)
    assert "was not asked" in value.reason
    with pytest.raises(TypeError, match="used as a truth value"):
        bool(value)
