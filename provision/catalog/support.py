"""Whether a driver branch is still mended on a day, by NVIDIA or by the distribution that packages it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING

from .tables import Catalog, catalog

if TYPE_CHECKING:
    from .rows import Branch


@dataclass(frozen=True)
class Support:
    """`nvidia` and `distribution` say who still mends the branch; `until` is NVIDIA's last day, if named."""

    branch: int
    nvidia: bool
    distribution: bool
    until: date | None
    says: str
    source: tuple[str, ...]

    @property
    def supported(self) -> bool:
        """Mended by somebody. Where that is the distribution alone, NVIDIA's end calls for a warning."""
        return self.nvidia or self.distribution


def last_day(month: str) -> date:
    """The last day of a month written YYYY-MM: support named by month holds through it."""
    year, number = (int(part) for part in month.split("-"))
    return date(year + number // 12, number % 12 + 1, 1) - timedelta(days=1)


@lru_cache(maxsize=1024)
def support(branch: int, *, os: str, source: str, today: date, of: Catalog | None = None) -> Support | None:
    """The state of a branch from a source on a distribution; None where the catalog has no such branch."""
    data = of or catalog()
    row = data.branches.get(branch)
    if row is None:
        return None
    until = last_day(row.eol) if row.eol else None
    nvidia = not row.ended and (until is None or today <= until)
    distribution, by = _maintained(row, os, source, today, data)
    end = f"NVIDIA's support ended in {row.eol}" if row.eol else "NVIDIA lists it as ended"
    if nvidia:
        says = f"R{branch} is supported by NVIDIA" + (f" until {row.eol}" if row.eol else "")
    elif distribution:
        says = f"R{branch}: {end}; {by} still maintains the package"
    else:
        says = f"R{branch}: {end}"
    return Support(branch, nvidia, distribution, until, says, row.source)


def _maintained(row: Branch, os: str, source: str, today: date, data: Catalog) -> tuple[bool, str]:
    place = data.distributions.get(os)
    for archive in data.archives:
        if archive.origin == source and archive.os == os and place and row.branch in archive.maintained:
            return today <= last_day(place.supported), place.name
    return False, ""
