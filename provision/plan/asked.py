"""What a run is asked for: every role that a finding names, some roles only, or all of them in any case."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from .saved import SavedPlan


@dataclass(frozen=True)
class Asked:
    """`only` are the roles that may run, empty for all. `every`: each runs once, wanted by a finding or not.

    `snapshot`: whether the way back is kept before anything changes. `saved` is the plan that may be run and
    no other; `begun` says that an earlier run has done part of it.
    """

    only: tuple[str, ...] = ()
    every: bool = False
    snapshot: bool = True
    saved: SavedPlan | None = None
    begun: bool = False

    def order(self, order: Sequence[str]) -> tuple[str, ...]:
        """Of all roles in their order those that may run."""
        return tuple(role for role in order if not self.only or role in self.only)

    def always(self, order: Sequence[str], ran: Collection[str]) -> tuple[str, ...]:
        """The roles that run whether or not a finding names them."""
        return tuple(role for role in self.order(order) if role not in ran) if self.every else ()


ALL = Asked()
