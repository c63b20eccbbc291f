"""Presets that ship with the project, and profiles of the user's own: files of variables."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from ..errors import Usage
from ..yaml_text import read_yaml, where
from .tree import root


def names() -> tuple[str, ...]:
    return tuple(sorted(f.stem for f in _folder().glob("*.yml")))


def load(name_or_file: str) -> tuple[str, Mapping[str, Any]]:
    """The profile's name and variables. A name is a preset; anything with a slash or a suffix is a file.

    Raises Usage where neither is there, or the file is no mapping.
    """
    if "/" in name_or_file or name_or_file.endswith((".yml", ".yaml")):
        file = Path(name_or_file)
        return file.stem, read(file)
    file = _folder() / f"{name_or_file}.yml"
    if not file.is_file():
        near = difflib.get_close_matches(name_or_file, names(), n=1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise Usage(
            f"no profile {name_or_file!r}",
            do=f"{hint}presets: {', '.join(names())}; a file is given by its path",
        )
    return name_or_file, read(file)


def read(file: Path) -> Mapping[str, Any]:
    """A YAML file of variables. Raises Usage with line and column where it is none."""
    try:
        document = read_yaml(file.read_text(encoding="utf-8"))
    except OSError as e:
        raise Usage(f"{file}: {e.strerror}") from e
    except (yaml.YAMLError, UnicodeDecodeError) as e:
        raise Usage(f"{file}: {where(e)}") from e
    if document is None:
        return {}
    if not isinstance(document, Mapping) or not all(isinstance(k, str) for k in document):
        raise Usage(f"{file}: must be a mapping of variables to values")
    return document


def _folder() -> Path:
    return root() / "inventory" / "group_vars"
