"""What the checks from outside came to."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


class CheckStatus(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    """Does not apply to this host; `message` says why."""


@dataclass(frozen=True)
class Started:
    """A check begins on a host."""

    host: str
    name: str
    title: str


@dataclass(frozen=True)
class Check:
    """One behaviour tried on one host. `name` is `subject.what`, `message` one line or a few for a person."""

    host: str
    name: str
    title: str
    status: CheckStatus
    message: str = ""
    seconds: float = 0.0

    @property
    def failed(self) -> bool:
        return self.status is CheckStatus.FAILED

    def as_dict(self) -> dict[str, Any]:
        return {
            "host": self.host,
            "check": self.name,
            "title": self.title,
            "status": str(self.status),
            "message": self.message,
            "seconds": round(self.seconds, 2),
        }


@dataclass(frozen=True)
class VerifyResult:
    """All checks of all hosts, in the order they ended. A host without any check did not prove anything."""

    checks: Mapping[str, tuple[Check, ...]]
    seconds: float

    @property
    def ok(self) -> bool:
        return all(checks and not any(c.failed for c in checks) for checks in self.checks.values())
