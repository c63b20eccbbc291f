"""A plan for one host. It is data: shown to a person, saved, and handed to converge."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..controls.model import Disrupts, Finding


@dataclass(frozen=True)
class Change:
    """One thing a role will change: `what` names it, `diff` is a unified diff where it is a file.

    `passing`: it is about this moment alone, such as who has to be waited for.
    """

    what: str
    diff: str = ""
    passing: bool = False


@dataclass(frozen=True)
class Step:
    """One role of one pass, the findings it mends and the changes it will make."""

    role: str
    findings: tuple[Finding, ...]
    changes: tuple[Change, ...] = ()

    @property
    def disrupts(self) -> Disrupts:
        """The worst that mending its findings disrupts."""
        return max((f.disrupts for f in self.findings), key=list(Disrupts).index, default=Disrupts.NOTHING)

    def as_dict(self) -> dict[str, Any]:
        return {
            "role": self.role,
            "mends": [f.control for f in self.findings],
            "changes": [c.what for c in self.changes],
            "disrupts": str(self.disrupts),
        }


@dataclass(frozen=True)
class Plan:
    """The next pass over one host.

    `later` are roles of a further pass: what they have to do is unknown until this pass is through.
    `refused` says why nothing may be done; there are no steps to run then.
    """

    host: str
    steps: tuple[Step, ...] = ()
    later: tuple[str, ...] = ()
    refused: tuple[str, ...] = field(default=())

    @property
    def empty(self) -> bool:
        return not self.steps and not self.refused

    @property
    def roles(self) -> tuple[str, ...]:
        return tuple(step.role for step in self.steps)

    def as_dict(self) -> dict[str, Any]:
        return {
            "host": self.host,
            "steps": [s.as_dict() for s in self.steps],
            "later": list(self.later),
            "refused": list(self.refused),
        }
