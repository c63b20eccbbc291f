"""Pure rules, a module a subject: (facts, profile, stack) -> finding. Each registers its controls."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from typing import TYPE_CHECKING

from .model import CONTROLS, Judged, with_required

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..catalog.stack import Stack
    from ..facts import Facts
    from ..facts.known import Unknown
    from ..profile.model import Profile
    from .model import Control, Finding


@cache
def all_controls() -> Mapping[str, Control]:
    """Every control of every module in this package, by name."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f".{module.name}", __name__)
    return dict(sorted(CONTROLS.items()))


def judge(facts: Facts, profile: Profile, stack: Stack | Unknown) -> tuple[Finding, ...]:
    """All findings of one host, by name. A profile may require controls that are not so by themselves."""
    host = Judged(facts, profile, stack)
    return tuple(
        with_required(found, True) if found.control in profile.required_controls else found
        for found in (control.find(host) for control in all_controls().values())
    )
