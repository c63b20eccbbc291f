"""The cards and machines a double can stand in for, as data."""

from __future__ import annotations

import difflib
import re
from functools import cache
from pathlib import Path
from typing import Any

from ...errors import Usage
from ...yaml_text import read_yaml

HERE = Path(__file__).parent


@cache
def models() -> dict[str, dict[str, Any]]:
    """Product name as nvidia-smi prints it -> what is known of the card (models/*.yml)."""
    found: dict[str, dict[str, Any]] = {}
    for file in sorted((HERE / "models").glob("*.yml")):
        for name, card in read_yaml(file.read_text()).items():
            found[name] = card | {"name": name}
    return found


@cache
def platforms() -> dict[str, dict[str, Any]]:
    """Kind of machine -> its NUMA nodes, slots, NICs and how its NVLinks run (platforms.yml)."""
    loaded: dict[str, dict[str, Any]] = read_yaml((HERE / "platforms.yml").read_text())
    return loaded


def _key(name: str) -> str:
    """Names differ in case, in `NVIDIA`, `Tesla` or `GeForce` before them and in the marks between words."""
    return re.sub(r"[^a-z0-9]", "", re.sub(r"\b(nvidia|tesla|geforce)\b", "", name.lower()))


def find(name: str) -> dict[str, Any]:
    """The card that `name` means: a product name or one of the card's short names, in any spelling.

    Raises Usage with the nearest names where there is none.
    """
    known = {_key(word): card for card in models().values() for word in (card["name"], *card["aliases"])}
    card = known.get(_key(name))
    if card is None:
        names = {_key(word): word for each in models().values() for word in (each["name"], *each["aliases"])}
        near = [names[key] for key in difflib.get_close_matches(_key(name), names, n=3, cutoff=0.5)]
        every = ", ".join(sorted(each["aliases"][0] for each in models().values()))
        hint = f"did you mean {' or '.join(near)}?" if near else f"known: {every}"
        raise Usage(f"no GPU double of model {name!r}", do=hint)
    return card
