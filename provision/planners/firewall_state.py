"""What is loaded and written on a host, held against what role firewall wants."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..facts.firewall import nft_chains
from ..facts.known import Absent, Unknown
from . import firewall_docker as docker
from . import firewall_nft as nft
from . import firewall_ufw as ufw
from .firewall_files import RULES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..facts import Facts
    from ..facts.firewall import Chain
    from .firewall_openings import Opening
    from .wanted import File


def is_loaded(facts: Facts, files: Sequence[File]) -> bool:
    """Whether the kernel has what these files say: our marked table, or as many rules as ufw's files have."""
    rules = facts.firewall
    if isinstance(rules, Unknown):
        return False
    texts = {f.path: f.text for f in files if f.text is not None}
    if RULES in texts:
        return _table_loaded(rules.chains, texts[RULES])
    return all(
        [ufw.rules(texts.get(path, ""), family)]
        == [len(c.rules) for c in rules.chains if c.name == ufw.CHAIN[family]]
        for family, path in ufw.RULES.items()
    )


def same(file: File, facts: Facts) -> bool:
    """Whether a file is as wanted; whom our table exempts as operators follows whoever ran."""
    now = facts.file(file.path)
    if isinstance(now, str) and file.text is not None and file.path == RULES:
        return nft.essential(now) == nft.essential(file.text)
    return isinstance(now, Absent) if file.text is None else now == file.text


def docker_closed(facts: Facts, allowed: Sequence[Opening]) -> bool:
    """Whether the kernel has the chain that lets only these in to published ports."""
    rules = facts.firewall
    return not isinstance(rules, Unknown) and docker.is_loaded(rules.chains, allowed)


def foreign(chains: Sequence[Chain]) -> tuple[Chain, ...]:
    """Chains of others that packets for this host pass and that have a rule or refuse."""
    return tuple(
        c for c in chains
        if c.hook == "input" and f"{c.family} {c.table}" != nft.TABLE and (c.rules or c.policy != "accept")
    )  # fmt: skip


def _table_loaded(chains: Sequence[Chain], text: str) -> bool:
    here = [c for c in chains if f"{c.family} {c.table}" == nft.TABLE]
    meant = nft_chains(text)
    if isinstance(meant, Unknown):
        return False
    marks = {nft.mark(rule) for c in here for rule in c.rules} - {None}
    return marks == {nft.mark(text)} and _shape(here) == _shape(meant)


def _shape(chains: Sequence[Chain]) -> set[tuple[str, str, int]]:
    """Name, policy and number of rules of each chain; a rule that somebody adds or takes away shows in it."""
    return {(c.name, c.policy, sum(nft.OPERATOR not in rule for rule in c.rules)) for c in chains}
