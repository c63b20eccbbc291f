"""The run's inventory: one file that may be kept, and one with the secrets that goes once it is read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import chain, count
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from pathlib import Path

    from .hosts import HostVars

# Ansible reads ranges, ports and patterns out of other names; those get an alias.
PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
RESERVED = frozenset({"all", "ungrouped", "localhost"})
TEMPLATE_MARKS = ("{{", "{%", "{#")


class _Final(str):
    """Text that Ansible must not take for a template."""


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


_Dumper.add_representer(_Final, lambda dumper, text: dumper.represent_scalar("!unsafe", str(text)))


def aliases(names: list[str]) -> dict[str, str]:
    """A name that Ansible takes literally for each host, its own where that will do. Keeps the order."""
    taken = {n for n in names if PLAIN_NAME.fullmatch(n) and n not in RESERVED}
    made: dict[str, str] = {}
    for name in names:
        if name not in taken:
            stem = f"host-{re.sub(r'[^A-Za-z0-9_.]+', '-', name).strip('-')}"
            numbered = (f"{stem}-{n}" for n in count(2))
            made[name] = next(alias for alias in chain([stem], numbered) if alias not in taken)
            taken.add(made[name])
        else:
            made[name] = name
    return made


def write(path: Path, hosts: Mapping[str, Mapping[str, Any]]) -> None:
    """Write an inventory of `hosts` (alias -> variables), readable by its owner only."""
    document = {"all": {"hosts": {name: _final(dict(variables)) for name, variables in hosts.items()}}}
    path.touch(mode=0o600)
    path.chmod(0o600)
    path.write_text(yaml.dump(document, Dumper=_Dumper, sort_keys=True, allow_unicode=True), encoding="utf-8")


def variables_of(host: HostVars) -> dict[str, Any]:
    """What the kept inventory says of a host."""
    return {**host.variables, "gpu_provision_roles": list(host.roles)}


def _final(value: Any) -> Any:
    if isinstance(value, str):
        return _Final(value) if any(mark in value for mark in TEMPLATE_MARKS) else str(value)
    if isinstance(value, Mapping):
        return {str(k): _final(v) for k, v in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_final(v) for v in value]
    return value
