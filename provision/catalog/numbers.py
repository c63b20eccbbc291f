"""Version numbers of the catalog's own rows, compared by `packaging` and never as strings.

Package versions with epochs and revisions (`3:550.78-1`, `580.95.05-0ubuntu0.24.04.2`) are reduced to
their upstream part by `facts.versions` before they come here.
"""

from __future__ import annotations

from functools import lru_cache

from packaging.version import InvalidVersion, Version


@lru_cache(maxsize=4096)
def number(text: str) -> Version:
    """A dotted number as a value that compares: 580.95.05 is above 580.65.06, 12.10 above 12.9.

    Raises ValueError on a text that is no dotted number.
    """
    try:
        found = Version(text)
    except InvalidVersion as e:
        raise ValueError(f"{text!r} is no version number") from e
    if found.is_prerelease or found.is_postrelease or found.local or found.epoch:
        raise ValueError(f"{text!r} is no version number")
    return found


def is_number(text: str) -> bool:
    """Whether a text is a dotted number."""
    try:
        number(text)
    except ValueError:
        return False
    return True


@lru_cache(maxsize=8192)
def starts(version: str, prefix: str) -> bool:
    """Whether a version belongs to a series: 9.10.2.21 to 9.10, but 9.1.0 not to 9.10."""
    want = number(prefix).release
    return number(version).release[: len(want)] == want


@lru_cache(maxsize=4096)
def minor(version: str) -> str:
    """The first two parts: 13.0 of 13.0.2."""
    release = number(version).release
    return f"{release[0]}.{release[1] if len(release) > 1 else 0}"


@lru_cache(maxsize=4096)
def major(version: str) -> int:
    """The first part: 580 of 580.95.05, 13 of 13.0."""
    return number(version).release[0]


@lru_cache(maxsize=8192)
def below(version: str, bound: str | None) -> bool:
    """Whether a version is older than a bound; None bounds nothing."""
    return bound is not None and number(version) < number(bound)


@lru_cache(maxsize=8192)
def above(version: str, bound: str | None) -> bool:
    """Whether a version is newer than a bound; None bounds nothing."""
    return bound is not None and number(version) > number(bound)
