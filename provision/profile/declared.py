"""Every variable the roles declare, read from `meta/argument_specs.yml`: the one place that names them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from ..yaml_text import read_yaml
from .tree import root

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Variable:
    """One variable of one role. `spec` is its entry in the role's argument specs."""

    name: str
    role: str
    default: Any
    spec: Mapping[str, Any]


@cache
def declared() -> Mapping[str, Variable]:
    """All variables of all roles by name."""
    found: dict[str, Variable] = {}
    for file in sorted(root().glob("roles/*/meta/argument_specs.yml")):
        role = file.parents[1].name
        document = read_yaml(file.read_text(encoding="utf-8"))
        for name, spec in (document["argument_specs"]["main"].get("options") or {}).items():
            found[name] = Variable(name, role, spec.get("default"), spec)
    return found


def roles() -> tuple[str, ...]:
    """All roles of the collection, by name."""
    return tuple(sorted(d.name for d in (root() / "roles").iterdir() if (d / "meta").is_dir()))
