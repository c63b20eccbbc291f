"""What differs between hosts that should be alike."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from provision.report.model import Judgement

    from .managed import Managed

# Ansible's own groups say nothing about what a host is for.
_NO_GROUPS = frozenset({"all", "ungrouped"})


def groups_of(hosts: Sequence[Managed]) -> dict[str, tuple[str, ...]]:
    """The hosts of each group of the inventory; those in none are laid beside others of their profile."""
    found: dict[str, list[str]] = {}
    for host in hosts:
        for group in [g for g in host.groups if g not in _NO_GROUPS] or [host.profile.name]:
            found.setdefault(group, []).append(host.name)
    return {group: tuple(names) for group, names in found.items()}


def drift(judged: Sequence[Judgement], groups: Mapping[str, Sequence[str]]) -> tuple[dict[str, Any], ...]:
    """A row for each value that not all hosts of a group share. Hosts that do not tell it are left out.

    The majority is what most have; of two that as many have, the greater text. Two groups of the same hosts
    give one row.
    """
    traits = {host.host: host.traits for host in judged if host.unreached is None}
    rows: list[dict[str, Any]] = []
    seen: set[tuple[str, tuple[str, ...]]] = set()
    for group, names in sorted(groups.items()):
        here = [name for name in names if name in traits]
        for what in sorted({what for name in here for what in traits[name]}):
            told = {name: traits[name][what] for name in here if what in traits[name]}
            mark = (what, tuple(sorted(told)))
            if len(set(told.values())) < 2 or mark in seen:
                continue
            seen.add(mark)
            count = Counter(told.values())
            most = max(count, key=lambda value: (count[value], value))
            odd = [{"host": name, "value": value} for name, value in told.items() if value != most]
            rows.append({"group": group, "what": what, "majority": most, "odd": odd})
    return tuple(rows)
