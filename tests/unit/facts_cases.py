"""Reading the cases of tests/recordings/facts: see test_facts_cases."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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


def names_of_facts() -> list[str]:
    return [
        name
        for name in dir(Facts)
        if not name.startswith("_") and name not in ("file", "files", "surface", "contents")
    ]
