"""`--set VARIABLE=VALUE`: YAML values, `@FILE` reads it from a file; an armoured key is text."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from ..errors import Usage
from ..yaml_text import read_yaml, where

if TYPE_CHECKING:
    from collections.abc import Iterable

ARMOUR = "-----BEGIN "


def parse(assignments: Iterable[str]) -> dict[str, Any]:
    """Variables by name. Raises Usage where one is no assignment, no YAML, or names a missing file."""
    values: dict[str, Any] = {}
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        if not equals or not name.strip():
            raise Usage(f"--set {assignment!r} is no VARIABLE=VALUE")
        try:
            if text.startswith("@"):
                text = Path(text[1:]).read_text(encoding="utf-8")
            # A key's lines and blank lines count, and YAML would fold them into one.
            values[name.strip()] = text if text.startswith(ARMOUR) else read_yaml(text)
        except OSError as e:
            raise Usage(f"--set {name}: {e.filename}: {e.strerror}") from e
        except yaml.YAMLError as e:
            raise Usage(f"--set {name}: the value is not YAML: {where(e)}") from e
        except UnicodeDecodeError as e:
            raise Usage(f"--set {name}: {text[1:]} is no UTF-8 text (byte {e.start})") from e
    return values
