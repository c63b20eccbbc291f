"""Why nothing fits: the smallest sets of demands that cannot hold together, the facts behind them, what to relax."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from .demand_rules import demand_rules
from .preference import key
from .question import Question
from .rules import Candidate, Rule
from .search import Space
from .stack import Conflict


def owners(q: Question) -> tuple[str, ...]:
    """The caller's demands by name, those on the set before those that say what the host is."""
    host = {q.os_label, q.arch_label}
    named = list(dict.fromkeys(rule.owner for rule in demand_rules(q) if rule.owner))
    return tuple([o for o in named if o not in host] + [o for o in named if o in host])


def conflicts(q: Question) -> tuple[Conflict, ...]:
    """All conflicts of the smallest size; () where the question has an answer.

    Each is minimal: with any one of its demands left out, the others can be met (with everything that is
    not demanded left free).
    """
    everything = owners(q)
    for size in range(1, len(everything) + 1):
        found = [s for s in combinations(everything, size) if not Space(q, s).any()]
        if found:
            return tuple(_explain(q, s) for s in found)
    return ()


def _explain(q: Question, demands: Sequence[str]) -> Conflict:
    facts = _facts(q, demands)
    says = list(dict.fromkeys(f.says for f in facts))
    sources = list(dict.fromkeys(s for f in facts for s in f.source))
    return Conflict(
        demands=tuple(demands),
        says="; ".join(says),
        relax=_relax(q, demands),
        source=q.catalog.says(sources),
    )


def _facts(q: Question, demands: Sequence[str]) -> list[Rule]:
    """The rules without which the demands would fit: the demands' own facts first, then the catalog's."""
    rules = list(Space(q, demands).all_rules())
    dropped: list[Rule] = []
    # The catalog's rules are tried first, so that what stays is what the demands themselves say, where that is enough.
    for rule in sorted(rules, key=lambda r: r.owner is not None):
        if not Space(q, demands, [*dropped, rule]).any():
            dropped.append(rule)
    left = [r for r in rules if r not in dropped]
    return sorted(left, key=lambda r: r.owner is None)


def _relax(q: Question, demands: Sequence[str]) -> str:
    """What each demand of the conflict could give way to, with the set that then fits."""
    ways = []
    for demand in demands:
        rest = [o for o in demands if o != demand]
        words = next((r.relax for r in demand_rules(q) if r.owner == demand and r.relax), f"leave out {demand}")
        best = _best(q, rest, demand)
        ways.append(words + (f" ({best})" if best else ""))
    return "; or ".join(ways)


def _best(q: Question, rest: Sequence[str], demand: str) -> str:
    """The best set without one demand, in the caller's own place; "" where the place itself gave way."""
    everything = [o for o in owners(q) if o != demand]
    fitting = list(Space(q, everything).sets()) or (list(Space(q, [*rest, *_place(q, demand)]).sets()))
    if not fitting:
        return ""
    return _words(min(fitting, key=key(q)), demand in {q.os_label, q.arch_label}, q)


def _place(q: Question, demand: str) -> list[str]:
    return [o for o in (q.os_label, q.arch_label) if o != demand]


def _words(c: Candidate, elsewhere: bool, q: Question) -> str:
    cuda = f" with CUDA {', '.join(c.cuda)}" if c.cuda else ""
    where = f" on {q.catalog.distributions[c.os].name}, {c.arch}" if elsewhere else ""
    return f"then R{c.branch} from {c.source}, {c.modules} modules{cuda}{where}"
