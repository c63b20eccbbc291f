"""A plan in a file: what was agreed to, to be run later, and refused where the host has changed since."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from .model import Plan

SCHEMA = "gpu-provision/plan/1"


class NoPlan(ValueError):
    """A document that is no saved plan; the message says what is wrong with it."""


@dataclass(frozen=True)
class SavedPlan:
    """One host's plan as it was saved.

    `made` is the time of that (UTC, ISO 8601), `profile` a digest of all variables. `changes` are what the
    roles do, in words; `digests` tell whether the contents of files, which words do not show, are the same.
    """

    made: str
    profile: str
    roles: tuple[str, ...]
    later: tuple[str, ...]
    changes: frozenset[str]
    digests: frozenset[str]

    def moved(self, plan: Plan, *, begun: bool) -> str:
        """How `plan`, made now, differs from this one; empty where it does not.

        `begun`: part of it was done by an earlier run, so what is missing now is no difference.
        """
        if plan.empty:
            return ""
        now = _words(plan)
        told = [f"now also: {text}" for text in sorted(now - self.changes)]
        told += [f"no more: {text}" for text in sorted(self.changes - now)] if not begun else []
        if not told and (others := _digests(plan) - self.digests):
            told = [f"other contents: {text.partition(' ')[2]}" for text in sorted(others)]
        return "; ".join(told)

    def beyond(self, plan: Plan) -> tuple[str, ...]:
        """Roles of a later pass that this plan did not announce."""
        return tuple(role for role in plan.roles if role not in {*self.roles, *self.later})


def profile_digest(variables: Mapping[str, Any]) -> str:
    """One word for all variables of a profile: they may hold what is nobody's to read in a file."""
    text = json.dumps(variables, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def document(made: str, plans: Iterable[tuple[Plan, Mapping[str, Any]]]) -> dict[str, Any]:
    """The document that a file holds: plans with the variables of their hosts' profiles."""
    return {
        "schema": SCHEMA,
        "made": made,
        "hosts": [
            {
                **plan.as_dict(),
                "profile": profile_digest(variables),
                "words": sorted(_words(plan)),
                "digests": sorted(_digests(plan)),
            }
            for plan, variables in plans
        ],
    }


def read(text: str) -> dict[str, SavedPlan]:
    """The plans in a document, by host. Raises NoPlan."""
    try:
        found = json.loads(text)
    except ValueError as e:
        raise NoPlan(f"not JSON: {e}") from e
    schema = found.get("schema") if isinstance(found, dict) else None
    if schema != SCHEMA:
        raise NoPlan(f"its schema is {schema!r}; this version reads {SCHEMA!r}")
    try:
        return {
            host["host"]: SavedPlan(
                made=found["made"],
                profile=host["profile"],
                roles=tuple(step["role"] for step in host["steps"]),
                later=tuple(host["later"]),
                changes=frozenset(host["words"]),
                digests=frozenset(host["digests"]),
            )
            for host in found["hosts"]
        }
    except (KeyError, TypeError) as e:
        raise NoPlan(f"something is missing or of another form: {e}") from e


def _words(plan: Plan) -> frozenset[str]:
    mends = {f"{step.role}: mends {f.control}" for step in plan.steps for f in step.findings}
    does = {f"{step.role}: {c.what}" for step in plan.steps for c in step.changes if not c.passing}
    return frozenset(mends | does | {f"{step.role}: runs" for step in plan.steps})


def _digests(plan: Plan) -> frozenset[str]:
    return frozenset(
        f"{hashlib.sha256(change.diff.encode()).hexdigest()} {step.role}: {change.what}"
        for step in plan.steps
        for change in step.changes
        if change.diff
    )
