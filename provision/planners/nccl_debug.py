"""NCCL's debug output: as long as somebody looks for something, and with the day on which that ends.

INFO writes some hundred lines a rank at each start, and a file of them grows until the disk is full.
"""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any

from .wanted import Why

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..facts import Facts
    from ..profile.model import Profile

VARIABLE = "nccl_debug"
LEVEL, SUBSYSTEMS, FILE = "NCCL_DEBUG", "NCCL_DEBUG_SUBSYS", "NCCL_DEBUG_FILE"
NAMES = (LEVEL, SUBSYSTEMS, FILE)
# These tell of nothing but the release and errors, and may stay.
_QUIET = ("VERSION", "WARN")
_DOCS = "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-debug"


def day(facts: Facts) -> date:
    """The day on which the host was recorded: a recording is judged alike whenever it is read."""
    return date.fromisoformat(facts.recording.taken[:10])


def until(profile: Profile) -> date | None:
    """The last day of what the profile asks for; None where it asks for nothing."""
    asked = profile[VARIABLE]
    return None if not asked else date.fromisoformat(str(asked["until"])[:10])


def asked(facts: Facts, profile: Profile) -> tuple[dict[str, str], tuple[Why, ...]]:
    """What is set today, and why; nothing once the last day is over."""
    named: Mapping[str, Any] = profile[VARIABLE] or {}
    end = until(profile)
    if end is None:
        return {}, ()
    if end < day(facts):
        return {}, (Why(LEVEL, f"not set any more: {VARIABLE} ended on {end}"),)
    values = {LEVEL: str(named["level"]).upper()}
    if named.get("subsystems"):
        values[SUBSYSTEMS] = ",".join(str(name).upper() for name in named["subsystems"])
    if named.get("file"):
        values[FILE] = str(named["file"])
    return values, (Why(LEVEL, f"{VARIABLE} asks for it until {end}", _DOCS),)


def for_ever(name: str, value: Any) -> str | None:
    """Why an entry of `nccl_variables` belongs into `nccl_debug`; None where it does not."""
    if name not in NAMES or (name == LEVEL and str(value).upper() in _QUIET):
        return None
    return (
        f"nccl_variables: {name} would stay for ever. Use "
        f"`{VARIABLE}: {{level: INFO, until: YYYY-MM-DD}}`, which ends by itself."
    )


def loud(settings: Mapping[str, str]) -> bool:
    """Whether settings make NCCL tell more than its release and errors."""
    return settings.get(LEVEL, "WARN").strip().upper() not in _QUIET
