"""Rules: what a candidate set has to satisfy, with the fact behind it and the demand that brought it in."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from .offers import Release
    from .rows import DriverPackages


@dataclass(frozen=True)
class Candidate:
    """A set in the making. What is not chosen yet is None; `cuda` () is a set without a toolkit.

    `kept` is True where the release is the one that the host has.
    """

    os: str
    arch: str
    source: str | None = None
    branch: int = 0
    modules: str = ""
    names: DriverPackages | None = None
    release: Release | None = None
    kept: bool = False
    cuda: tuple[str, ...] = ()
    toolkit_source: str = ""
    compatibility: str = "native"
    cudnn: str | None = None
    nccl: str | None = None

    def with_(self, **changes: object) -> Candidate:
        return replace(self, **changes)  # type: ignore[arg-type]


STAGES = ("place", "source", "driver", "cuda", "cudnn", "nccl")


@dataclass(frozen=True)
class Rule:
    """One constraint. `stage` says when enough is chosen to judge it; `owner` whose demand it comes from.

    `owner` None is a rule of the catalog's own, which no caller can relax. `words` gives the fact behind it,
    which is put together only when it is shown; `relax` says what the owner could do about it. Two rules are
    the same where name and owner are.
    """

    name: str
    stage: str
    words: Callable[[], str] = field(compare=False)
    source: tuple[str, ...] = field(compare=False)
    holds: Callable[[Candidate], bool] = field(compare=False)
    owner: str | None = None
    relax: str = field(default="", compare=False)
