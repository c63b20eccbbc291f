"""Which of several fitting sets is the best one: the measures behind the order in preference.yml."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .compatibility import RANK
from .numbers import number
from .support import support

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .question import Question
    from .rules import Candidate

_TYPES = {"LTS": 0, "PB": 1, "NFB": 2, "DEV": 3}
Measure = tuple[int, ...]


def key(q: Question) -> Callable[[Candidate], tuple[Measure, ...]]:
    """A sort key: the measures in the documented order; the smallest is the best set."""
    measures = [MEASURES[p.key] for p in q.catalog.order]
    return lambda c: tuple(measure(c, q) for measure in measures)


def _foreign(c: Candidate, q: Question) -> Measure:
    return (int(c.source == "debian" and c.toolkit_source == "nvidia"),)


def _source(c: Candidate, q: Question) -> Measure:
    return (0 if q.demands.source != "auto" or c.source == "nvidia" else 1,)


def _absent(c: Candidate, q: Question) -> Measure:
    return (int(not c.cuda),)


def _unsupported(c: Candidate, q: Question) -> Measure:
    state = support(c.branch, os=c.os, source=c.source or "", today=q.today, of=q.catalog)
    return (int(state is None or not state.supported),)


def _newest_first(version: str) -> Measure:
    return tuple(-part for part in (*number(version).release, 0, 0, 0)[:3])


def _unbuilt(c: Candidate, q: Question) -> Measure:
    return (int(bool(c.names and c.names.unbuilt) and not c.kept),)


def _kept(c: Candidate, q: Question) -> Measure:
    return (int(not c.kept),)


MEASURES: Mapping[str, Callable[[Candidate, Question], Measure]] = {
    "other-source": _source,
    "toolkit-absent": _absent,
    "unsupported": _unsupported,
    "unbuilt": _unbuilt,
    "compatibility": lambda c, q: (RANK[c.compatibility],),
    "replaced": _kept,
    "foreign-toolkit": _foreign,
    "branch-type": lambda c, q: (_TYPES[q.catalog.branches[c.branch].type],),
    "older-branch": lambda c, q: (-c.branch,),
    "older-release": lambda c, q: _newest_first(c.release.version) if c.release else (0, 0, 0),
    "modules": lambda c, q: (int(c.modules != "open"),),
    "older-toolkit": lambda c, q: _newest_first(c.cuda[0]) if c.cuda else (0, 0, 0),
}
