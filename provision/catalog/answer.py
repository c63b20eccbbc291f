"""The chosen set as the resolver's answer: packages, pins, reasons, warnings."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from .card_rules import known_version, knows
from .compatibility import floor, wanted_driver
from .libraries import container_toolkit, cuda_part, cudnn_part, fabric_manager, nccl_part
from .numbers import below, major, number
from .reasons import reasons
from .stack import Driver, Stack
from .support import support
from .warnings import warnings

if TYPE_CHECKING:
    from .question import Question
    from .rules import Candidate


def answer(q: Question, c: Candidate) -> Stack:
    """The Stack of a candidate that satisfies every rule."""
    minimum = minimum_of(q, c)
    state = support(c.branch, os=c.os, source=c.source or "", today=q.today, of=q.catalog)
    names = c.names
    assert names is not None
    driver = Driver(
        branch=c.branch,
        version=known_version(c, q),
        minimum=minimum,
        modules=c.modules,
        source="rhel" if q.demands.source == "rhel" else (c.source or ""),
        packages=(*names.lockstep, *names.beside),
        pin=_pin(q, c),
        pin_by=names.pin_by,
        main=names.main,
        support=state.says if state else "",
        mended=state is None or state.supported,
        move_together=_patterns(q, c, "move_together"),
        never_mixed=_patterns(q, c, "never_mixed"),
    )
    return Stack(
        satisfiable=True,
        driver=driver,
        cuda=cuda_part(q, c, c.cuda[0]) if c.cuda else None,
        cudnn=cudnn_part(q, c) if c.cudnn else None,
        nccl=nccl_part(q, c) if c.nccl else None,
        container_toolkit=container_toolkit(q),
        fabric_manager=fabric_manager(q, c),
        cuda_others=tuple(cuda_part(q, c, version) for version in c.cuda[1:]),
        reasons=reasons(q, c, minimum),
        warnings=warnings(q, c, minimum),
    )


def minimum_of(q: Question, c: Candidate) -> str:
    """The oldest release of the branch that serves the GPUs, the toolkits and cuDNN."""
    branch = q.catalog.branches[c.branch]
    bounds = [branch.first, *(knows(gpu, c, q) or "" for gpu in q.cards)]
    for version in c.cuda:
        lowest = floor(q.catalog, version)
        if c.compatibility == "native":
            bounds.append(wanted_driver(q.catalog, version) or "")
        if c.compatibility != "forward" and lowest:
            bounds.append(lowest.min)
    inside = [b for b in bounds if b and major(b) == c.branch and not below(b, branch.first)]
    return max(inside, key=number, default=branch.first)


def _pin(q: Question, c: Candidate) -> tuple[str, ...]:
    """What keeps the driver where it is, in the terms of `pin_by`."""
    names = c.names
    assert names is not None
    version = known_version(c, q)
    if names.pin_by == "hold":
        if c.release is not None:
            return tuple(f"{name}={value}" for name, value in c.release.packages.items())
        return tuple(f"{name}={version}*" for name in names.lockstep) if version else ()
    if names.pin_by == "pinning-package" and version:
        # The package of a full release holds that release; the one of the branch lets fixes through.
        return tuple(pin.replace(f"-{c.branch}", f"-{version}") for pin in names.pin)
    return names.pin


def _patterns(q: Question, c: Candidate, table: str) -> tuple[str, ...]:
    """Patterns of packages for the driver's source, but for those that would forbid its own."""
    assert c.names is not None
    family = q.catalog.distributions[c.os].family
    rows = q.catalog.raw["packages"][table]
    found = [p for r in rows if r["source"] == c.source and family in r["family"] for p in r["patterns"]]
    if table == "never_mixed":
        own = c.names.lockstep
        found = [p for p in found if not any(fnmatchcase(name, p) for name in own)]
    return tuple(found)
