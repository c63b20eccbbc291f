"""One profile from its layers: role defaults < preset < inventory < --set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import Usage
from . import administrators
from .declared import declared
from .model import Profile
from .validate import unknown_names, wrong_values

if TYPE_CHECKING:
    from collections.abc import Mapping


def compose(
    name: str,
    preset: Mapping[str, Any],
    inventory: Mapping[str, Any],
    settings: Mapping[str, Any],
    *,
    host: str | None = None,
) -> Profile:
    """The validated profile of one host.

    Raises Usage with one line for each wrong variable, naming the layer it came from.
    """
    errors: list[str] = []
    for layer, values, foreign in (
        (f"profile {name}", preset, False),
        ("inventory", inventory, True),
        ("--set", settings, False),
    ):
        errors += [f"{layer}: {e}" for e in unknown_names(values, foreign_allowed=foreign)]
        errors += [f"{layer}: {e}" for e in wrong_values(values)]
    if errors:
        raise Usage("; ".join(errors), host=host)
    ours = declared()
    chosen = {k: v for layer in (preset, inventory, settings) for k, v in layer.items() if k in ours}
    if chosen.get(administrators.VARIABLE) is not None:
        # Files of this machine are read now: from here on the profile is whole without it.
        chosen[administrators.VARIABLE] = administrators.expanded(chosen[administrators.VARIABLE])
    required = {**preset, **inventory, **settings}.get("required_controls") or ()
    return Profile(
        name=name,
        variables={k: chosen.get(k, v.default) for k, v in ours.items()},
        chosen=chosen,
        required_controls=frozenset(required),
    )
