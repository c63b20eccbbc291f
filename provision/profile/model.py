"""The profile: what a host is meant to be, as validated Ansible variables."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Profile:
    """Effective variables of one host: role defaults < preset < inventory < --set, validated.

    `variables` has every declared variable, so that a reader never supplies a default of its own.
    `chosen` holds only those that the preset, the inventory or --set gave.
    """

    name: str
    variables: Mapping[str, Any]
    chosen: Mapping[str, Any] = field(default_factory=dict)
    required_controls: frozenset[str] = frozenset()

    def __getitem__(self, variable: str) -> Any:
        return self.variables[variable]
