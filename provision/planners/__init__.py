"""What a role has to make true on one host, computed from facts, profile and stack.

A planner is pure. The role writes what it returns, the control compares it with what the recording
shows: both read the same words, so they cannot disagree.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..catalog.stack import Stack
    from ..facts import Facts
    from ..facts.known import Unknown
    from ..profile.model import Profile
    from .wanted import Wanted


def wanted_for(role: str, facts: Facts, profile: Profile, stack: Stack | Unknown) -> Wanted:
    """The answer of the planner of `role`. Raises ModuleNotFoundError where the role has none."""
    planner = importlib.import_module(f".{role}", __name__)
    answer: Wanted = planner.wanted(facts, profile, stack)
    return answer
