"""Where the roles, playbooks and presets lie: the collection's root, whichever door the code came in by."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from ..yaml_text import read_yaml

NAMESPACE, NAME = "gpu_provision", "host"


@cache
def root() -> Path:
    """The directory that holds roles/, playbooks/, plugins/, inventory/ and galaxy.yml or MANIFEST.json.

    That is the checkout, or an installed collection (this file is then inside it), or the collection
    that the wheel carries beside the package. Raises FileNotFoundError where none of them is there.
    """
    home = Path(__file__).resolve().parents[2]
    for place in (home, home / "ansible_collections" / NAMESPACE / NAME):
        if (place / "roles").is_dir() and (place / "playbooks").is_dir():
            return place
    raise FileNotFoundError(f"no collection {NAMESPACE}.{NAME} at or beside {home}")


@cache
def role_order() -> tuple[str, ...]:
    """The short names of all roles in the order in which they run, as playbooks/site.yml has them."""
    plays = read_yaml((root() / "playbooks" / "site.yml").read_text(encoding="utf-8"))
    return tuple(entry["role"].rpartition(".")[2] for entry in plays[0]["roles"])
