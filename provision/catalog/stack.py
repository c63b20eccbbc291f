"""The stack: the one matching set the resolver chose, with its reasons (`gpu-provision/stack/1`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

SCHEMA = "gpu-provision/stack/1"


@dataclass(frozen=True)
class Reason:
    """Why one part of the set is what it is. `source` is a document or a named row of the catalog's data."""

    about: str
    says: str
    source: str


@dataclass(frozen=True)
class Warning_:
    """A set that works, with a catch. `kind` is one of the contract's names."""

    kind: str
    says: str
    source: str


@dataclass(frozen=True)
class Driver:
    """The driver to install. `version` is exact only where the archive's offer is known, else None."""

    branch: int
    version: str | None
    minimum: str | None
    modules: str
    source: str
    packages: tuple[str, ...]
    pin: tuple[str, ...]


@dataclass(frozen=True)
class Part:
    """A component beside the driver: CUDA toolkit, cuDNN, NCCL, container toolkit or fabric manager."""

    version: str
    packages: tuple[str, ...]


@dataclass(frozen=True)
class Conflict:
    """A smallest set of the caller's demands that cannot hold together, and what to relax."""

    demands: tuple[str, ...]
    says: str
    relax: str
    source: str


@dataclass(frozen=True)
class Stack:
    """The resolver's answer. Where `satisfiable` is False only `conflicts` and `warnings` hold anything."""

    satisfiable: bool
    driver: Driver | None = None
    cuda: Part | None = None
    cudnn: Part | None = None
    nccl: Part | None = None
    container_toolkit: Part | None = None
    fabric_manager: Part | None = None
    reasons: tuple[Reason, ...] = ()
    warnings: tuple[Warning_, ...] = ()
    conflicts: tuple[Conflict, ...] = field(default=())

    def as_dict(self) -> dict[str, Any]:
        """The JSON document of the contract."""
        document: dict[str, Any] = {"schema": SCHEMA, "satisfiable": self.satisfiable}
        for name in ("driver", "cuda", "cudnn", "nccl", "container_toolkit", "fabric_manager"):
            part = getattr(self, name)
            document[name] = _plain(part) if part else None
        document["reasons"] = [_plain(r) for r in self.reasons]
        document["warnings"] = [_plain(w) for w in self.warnings]
        if not self.satisfiable:
            document["conflicts"] = [_plain(c) for c in self.conflicts]
        return document

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Stack:
        """The inverse of as_dict. Raises KeyError or TypeError on a document of another shape."""

        def part(name: str) -> Part | None:
            raw = document.get(name)
            return Part(raw["version"], tuple(raw["packages"])) if raw else None

        driver = document.get("driver")
        return cls(
            satisfiable=bool(document["satisfiable"]),
            driver=Driver(**{k: tuple(v) if isinstance(v, list) else v for k, v in driver.items()}) if driver else None,
            cuda=part("cuda"),
            cudnn=part("cudnn"),
            nccl=part("nccl"),
            container_toolkit=part("container_toolkit"),
            fabric_manager=part("fabric_manager"),
            reasons=tuple(Reason(**r) for r in document.get("reasons", ())),
            warnings=tuple(Warning_(**w) for w in document.get("warnings", ())),
            conflicts=tuple(
                Conflict(tuple(c["demands"]), c["says"], c["relax"], c["source"]) for c in document.get("conflicts", ())
            ),
        )


def _plain(value: Any) -> dict[str, Any]:
    return {k: list(v) if isinstance(v, tuple) else v for k, v in vars(value).items()}
