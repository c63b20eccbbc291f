"""Why nothing fits: the smallest sets of demands that clash, the facts behind them, what to relax."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

from .catalog_rules import offered
from .demand_rules import demand_rules
from .preference import key
from .search import Space
from .stack import Conflict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .question import Question
    from .rules import Candidate, Rule


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
    says = list(dict.fromkeys(f.words() for f in facts))
    if q.archive is not None and q.os_label in demands:
        says.append(offered(q))
    # A demand is a source only where nothing stands behind the conflict but demands.
    sources = [s for s in dict.fromkeys(s for f in facts for s in f.source) if s != "caller"] or ["caller"]
    return Conflict(
        demands=tuple(demands),
        says="; ".join(says),
        relax=_relax(q, demands),
        source=q.catalog.says(sources),
    )


def _facts(q: Question, demands: Sequence[str]) -> list[Rule]:
    """The rules without which the demands would fit: the demands' own facts first, then the catalog's.

    They are sought in the caller's own place, where the conflict holds as it does everywhere, so that the
    words speak of the caller's distribution. Of the rules of the place itself only those of a demand in the
    conflict can show.
    """
    here = [*demands, *(o for o in (q.os_label, q.arch_label) if o not in demands)]
    space = Space(q, here)
    rules = [r for r in space.all_rules() if r.stage != "place"]
    dropped: list[Rule] = []
    # The catalog's rules are tried first, so that what stays is what the demands say by themselves.
    for rule in sorted(rules, key=lambda r: r.owner is not None):
        if not Space(q, here, [*dropped, rule]).any():
            dropped.append(rule)
    left = [r for r in rules if r not in dropped]
    return sorted(left, key=lambda r: r.owner is None)


def _relax(q: Question, demands: Sequence[str]) -> str:
    """What each demand of the conflict could give way to, with the set that then fits."""
    ways = []
    place = {q.os_label, q.arch_label}
    for demand in demands:
        rest = [o for o in demands if o != demand]
        words = next(
            (r.relax for r in demand_rules(q) if r.owner == demand and r.relax), f"leave out {demand}"
        )
        best = _best(q, rest, demand)
        if demand == q.os_label and best is not None and best.os == q.os:
            # With the system went what its archives offer: the same one with more in them would do.
            words = "give the host an archive that offers it"
        ways.append(words + (f" ({_words(best, demand in place, q)})" if best else ""))
    return "; or ".join(ways)


def _best(q: Question, rest: Sequence[str], demand: str) -> Candidate | None:
    """The best set without one demand: with all others, or where those clash too, with the conflict's own."""
    everything = [o for o in owners(q) if o != demand]
    fitting = list(Space(q, everything).sets()) or (list(Space(q, [*rest, *_place(q, demand)]).sets()))
    return min(fitting, key=key(q), default=None)


def _place(q: Question, demand: str) -> list[str]:
    return [o for o in (q.os_label, q.arch_label) if o != demand]


def _words(c: Candidate, elsewhere: bool, q: Question) -> str:
    cuda = f" with CUDA {', '.join(c.cuda)}" if c.cuda else ""
    where = f" on {q.catalog.distributions[c.os].name}, {c.arch}" if elsewhere else ""
    return f"then R{c.branch} from {c.source}, {c.modules} modules{cuda}{where}"
