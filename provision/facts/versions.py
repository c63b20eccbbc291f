"""Versions of packages and drivers, compared by their own rules and never as strings.

Debian's order is that of Debian Policy 5.6.12 and deb-version(7). It is written out here because no
library with it is among those that run inside a playbook.
"""

from __future__ import annotations

import re
from functools import cmp_to_key
from itertools import zip_longest

_Number = tuple[int, str]
_DRIVER = re.compile(r"(?<![\d.])(\d{3,4}(?:\.\d{1,4}){1,2})(?![\d.]*\d)")


def upstream(version: str) -> str:
    """The upstream part of a package's version: epoch and revision are the packager's.

    >>> upstream("3:580.95.05-0ubuntu1")
    '580.95.05'
    """
    _, _, rest = version.rpartition(":") if re.match(r"\d+:", version) else ("", "", version)
    head, dash, _ = rest.rpartition("-")
    return head if dash else rest


def driver_tuple(version: str) -> tuple[int, ...] | None:
    """An NVIDIA driver's version as numbers that compare; None for a text that is none.

    Epoch, revision and words after the number are left out: `1:610.57.04-1` and
    `610.57.04 [Deprecated; …]` are both (610, 57, 4).
    """
    found = _DRIVER.search(version.strip())
    return tuple(int(part) for part in found.group(1).split(".")) if found else None


def driver_version(text: str) -> str | None:
    """The first driver version that a text names, as written there."""
    found = _DRIVER.search(text)
    return found.group(1) if found else None


def branch(version: str) -> int | None:
    """The driver branch of a version: 580 for 580.95.05."""
    numbers = driver_tuple(version)
    return numbers[0] if numbers else None


def same_driver(a: str, b: str) -> bool:
    """Whether two texts name one driver. NVML's library names only two parts (`580.178` for 580.178.04)."""
    left, right = driver_tuple(a), driver_tuple(b)
    if left is None or right is None:
        return False
    shorter = min(len(left), len(right))
    return left[:shorter] == right[:shorter]


def compare_debian(a: str, b: str) -> int:
    """-1, 0 or 1 as package version `a` is older than, equal to or newer than `b` for dpkg."""
    (epoch_a, upstream_a, revision_a), (epoch_b, upstream_b, revision_b) = _parts(a), _parts(b)
    if epoch_a != epoch_b:
        return -1 if epoch_a < epoch_b else 1
    return _compare_part(upstream_a, upstream_b) or _compare_part(revision_a, revision_b)


debian_key = cmp_to_key(compare_debian)
"""Sort key: `sorted(versions, key=debian_key)`."""


def _parts(version: str) -> tuple[_Number, str, str]:
    epoch, colon, rest = version.strip().partition(":")
    if not colon or not epoch.isdecimal():
        epoch, rest = "0", version.strip()
    head, dash, revision = rest.rpartition("-")
    return _number(epoch), (head if dash else rest), (revision if dash else "0")


def _compare_part(a: str, b: str) -> int:
    """One part: stretches of non-digits (a tilde first, then end, letters, the rest) and numbers in turn."""
    pairs = zip_longest(_stretches(a), _stretches(b), fillvalue=("", _ZERO))
    for (words_a, number_a), (words_b, number_b) in pairs:
        key_a, key_b = _order(words_a), _order(words_b)
        if key_a != key_b:
            return -1 if key_a < key_b else 1
        if number_a != number_b:
            return -1 if number_a < number_b else 1
    return 0


def _stretches(part: str) -> list[tuple[str, _Number]]:
    found = re.findall(r"([^0-9]*)([0-9]*)", part)
    return [(words, _number(number)) for words, number in found if words or number]


def _number(digits: str) -> _Number:
    """A number of any length as something that compares: packagers write dates, and int() has a limit."""
    significant = digits.lstrip("0")
    return len(significant), significant


_ZERO = _number("0")


def _order(words: str) -> list[int]:
    end = 0
    weights = [-1 if c == "~" else ord(c) if c.isalpha() else ord(c) + 0x110000 for c in words]
    return [*weights, end]
