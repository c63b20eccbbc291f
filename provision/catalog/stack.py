"""The stack: the one matching set the resolver chose, with its reasons (`gpu-provision/stack/1`)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

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
    """The driver to install. `version` is exact only where the archive's offer is known, else None.

    `packages` go in together, in one transaction, and stay held together. What `pin` has is said by
    `pin_by`: `hold` (`name=version` for each package, to be installed so and held with apt-mark; none where
    the archive is not known), `pinning-package` (packages that go in first, in a transaction of their own),
    `dnf-module` (a module stream to enable first) or `dnf-versionlock` (patterns to lock afterwards).
    `main` is the package whose version is the driver's, `support` a word on who still mends the branch, and
    `mended` False where nobody does.
    `move_together` has patterns of what carries the driver's version and moves with it wherever it is
    installed, `never_mixed` of what must not be on the host beside it.
    """

    branch: int
    version: str | None
    minimum: str | None
    modules: str
    source: str
    packages: tuple[str, ...]
    pin: tuple[str, ...]
    pin_by: str = "hold"
    main: str = ""
    support: str = ""
    mended: bool = True
    move_together: tuple[str, ...] = ()
    never_mixed: tuple[str, ...] = ()


@dataclass(frozen=True)
class Part:
    """A component beside the driver: CUDA toolkit, cuDNN, NCCL, container toolkit or fabric manager.

    `version` is a series (`13.0`, `9.28`) unless the archive or the caller named the release. `pin` has
    `name=version` for each package whose version must be kept, with `*` for the packager's part; `source`
    is the repository.
    """

    version: str
    packages: tuple[str, ...]
    pin: tuple[str, ...] = ()
    source: str = ""


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
    cuda_others: tuple[Part, ...] = ()
    reasons: tuple[Reason, ...] = ()
    warnings: tuple[Warning_, ...] = ()
    conflicts: tuple[Conflict, ...] = field(default=())

    def as_dict(self) -> dict[str, Any]:
        """The JSON document of the contract."""
        document: dict[str, Any] = {"schema": SCHEMA, "satisfiable": self.satisfiable}
        for name in ("driver", "cuda", "cudnn", "nccl", "container_toolkit", "fabric_manager"):
            part = getattr(self, name)
            document[name] = _plain(part) if part else None
        if self.cuda_others:
            document["cuda_others"] = [_plain(p) for p in self.cuda_others]
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
            return _part(raw) if raw else None

        driver = document.get("driver")
        return cls(
            satisfiable=bool(document["satisfiable"]),
            driver=Driver(**_tuples(driver)) if driver else None,
            cuda=part("cuda"),
            cudnn=part("cudnn"),
            nccl=part("nccl"),
            container_toolkit=part("container_toolkit"),
            fabric_manager=part("fabric_manager"),
            cuda_others=tuple(_part(raw) for raw in document.get("cuda_others", ())),
            reasons=tuple(Reason(**r) for r in document.get("reasons", ())),
            warnings=tuple(Warning_(**w) for w in document.get("warnings", ())),
            conflicts=tuple(
                Conflict(tuple(c["demands"]), c["says"], c["relax"], c["source"])
                for c in document.get("conflicts", ())
            ),
        )


def _part(raw: Mapping[str, Any]) -> Part:
    return Part(**_tuples(raw))


def _tuples(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Lists as JSON has them become the tuples of the dataclasses."""
    return {k: tuple(v) if isinstance(v, list) else v for k, v in raw.items()}


def _plain(value: Any) -> dict[str, Any]:
    return {k: list(v) if isinstance(v, tuple) else v for k, v in vars(value).items()}
