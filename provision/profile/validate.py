"""Variables are checked before a host is touched: unknown and near-miss names, types, choices, shapes."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any

from .declared import Variable, declared, roles
from .shapes import SHAPES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

# How alike two names must be before one counts as a misspelling of the other; difflib's own default
# for close matches is 0.6, which pairs names that merely share a prefix.
ALIKE = 0.85


def unknown_names(names: Iterable[str], *, foreign_allowed: bool) -> list[str]:
    """One sentence for each name that is none of ours but was meant to be.

    An inventory may hold variables of other roles (`foreign_allowed`): there only names that begin
    with a role of ours, or nearly are one of our variables, are errors. Elsewhere every unknown name is.
    """
    known = declared()
    errors = []
    for name in names:
        if name in known or name in PROFILE_VARIABLES:
            continue
        near = difflib.get_close_matches(name, known, n=1, cutoff=ALIKE if foreign_allowed else 0.6)
        ours = any(name.startswith(f"{role}_") for role in roles())
        if near or ours or not foreign_allowed:
            hint = f"; did you mean {near[0]}?" if near else ""
            errors.append(f"unknown variable {name}{hint}")
    return errors


def wrong_values(values: Mapping[str, Any]) -> list[str]:
    """One sentence for each declared variable whose value is of the wrong type or shape."""
    errors = []
    for name, value in values.items():
        if name == "required_controls" and (problem := _no_controls(value)):
            errors.append(f"{name}: {problem}")
        variable = declared().get(name)
        if variable is None or (value is None and variable.default is None):
            continue
        problem = _wrong_type(variable, value)
        if problem is None and name in SHAPES:
            problem = SHAPES[name](value)
        if problem:
            errors.append(f"{name}: {problem}")
    return errors


def _wrong_type(variable: Variable, value: Any) -> str | None:
    """What Ansible's own validator says: the command and the role can then never disagree about a type."""
    # Slow to import, and not needed where a profile gives nothing.
    from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

    name = variable.name
    result = ArgumentSpecValidator({name: _checkable(variable)}).validate({name: value})
    if not result.error_messages:
        return None
    return _plainly(variable.spec, value) or result.error_messages[0].removeprefix(f"{name}: ")


def _plainly(spec: Mapping[str, Any], value: Any) -> str | None:
    """What is wrong with the type of a value that Ansible refused; Ansible tells it by Python's classes."""
    kind, parts = spec.get("type"), ", ".join(spec.get("options") or ())
    if kind == "list" and not isinstance(value, str | list | tuple):
        return f"must be a list, not {value!r}"
    if kind == "list" and spec.get("elements") == "dict":
        entries = value if isinstance(value, list | tuple) else [value]
        wrong = [entry for entry in entries if not isinstance(entry, dict)]
        return f"must be a list of mappings ({parts}), and {wrong[0]!r} is none" if wrong else None
    if kind == "dict" and not isinstance(value, dict):
        return f"must be a mapping, not {value!r}"
    if kind == "int" and not (isinstance(value, str | int) and str(value).lstrip("-").isdigit()):
        return f"must be a whole number, not {value!r}"
    return f"must be true or false, not {value!r}" if kind == "bool" else None


def _no_controls(value: Any) -> str | None:
    """What is wrong with a list of controls: a misspelt one would never be required."""
    from ..controls import all_controls

    if value is None:
        return None
    if not isinstance(value, list | tuple) or not all(isinstance(name, str) for name in value):
        return "must be a list of controls"
    for name in value:
        if name not in all_controls():
            near = difflib.get_close_matches(name, all_controls(), n=1)
            return f"unknown control {name}" + (f"; did you mean {near[0]}?" if near else "")
    return None


def _checkable(variable: Variable) -> dict[str, Any]:
    """The spec without what only documents it."""
    return _strip(variable.spec)


def _strip(spec: Mapping[str, Any]) -> dict[str, Any]:
    kept = {k: v for k, v in spec.items() if k in ("type", "elements", "choices", "required", "no_log")}
    if options := spec.get("options"):
        kept["options"] = {name: _strip(sub) for name, sub in options.items()}
    return kept


# Variables that are the profile's own, not a role's.
PROFILE_VARIABLES = frozenset({"required_controls"})
