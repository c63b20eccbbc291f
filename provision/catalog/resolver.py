"""The resolver: from GPUs, a host and demands to the best matching set, or to why there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .answer import answer
from .conflict import conflicts, owners
from .demands import Demands
from .preference import key
from .question import Question, ask
from .search import Space
from .stack import Stack
from .tables import Catalog, catalog

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date

    from .gpus import PciId
    from .offers import Offers
    from .rules import Candidate


def resolve(
    gpus: Sequence[str | PciId],
    *,
    os: str,
    arch: str,
    today: date,
    archive: Offers | None = None,
    demands: Demands | None = None,
    of: Catalog | None = None,
) -> Stack:
    """The best set of driver, CUDA, cuDNN and NCCL that serves all GPUs of a host, with reasons.

    `gpus` are names as nvidia-smi prints them, marketing names or PCI ids; `os` is ID and VERSION_ID of
    os-release joined. `archive` is what the host's archives really offer: without it the answer names a
    branch and a minimum, never a release as if it were certain. `today` decides what is still supported.

    Where nothing fits the Stack is not satisfiable and has the smallest conflicting sets of demands.
    Raises Usage (exit code 2) on unknown GPUs, systems and versions.
    """
    question = ask(gpus, os, arch, today, archive, demands or Demands(), of or catalog())
    chosen = best(question)
    if chosen is None:
        return Stack(satisfiable=False, conflicts=conflicts(question))
    return answer(question, chosen)


def best(q: Question) -> Candidate | None:
    """The best set by the documented order, libraries included; None where nothing fits."""
    space = Space(q, owners(q))
    chosen = min(space.sets(), key=key(q), default=None)
    if chosen is None:
        return None
    with_cudnn = next(space.libraries(chosen, "cudnn"))
    return next(space.libraries(with_cudnn, "nccl"))
