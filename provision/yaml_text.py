"""YAML as this project reads it, a person's and its own: no key twice in a mapping, and no waiting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator

    from yaml.nodes import Node

# libyaml's loader reads the same in a tenth of the time; not every build of PyYAML has it.
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_MERGE = "tag:yaml.org,2002:merge"


def read_yaml(text: str) -> Any:
    """The value of a YAML text. Raises YAMLError where it has none, or names a key of a mapping twice."""
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        _no_key_twice(node)
        return loader.construct_document(node)
    except (ValueError, RecursionError) as e:  # 2026-02-31 looks like a date and is none
        raise yaml.YAMLError(str(e)) from e
    finally:
        loader.dispose()


def check(text: str) -> None:
    """Raises YAMLError as `read_yaml` does, but leaves tags that it does not know to whoever does."""
    for node in yaml.compose_all(text, _Loader):
        _no_key_twice(node)


def where(error: Exception) -> str:
    """What is wrong with a text of YAML, and where in it."""
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error)
    return f"line {mark.line + 1}, column {mark.column + 1}: {problem}" if mark else f"not YAML: {problem}"


def _no_key_twice(root: Node) -> None:
    """YAML forbids it (1.2.2, section 3.2.1.1), and every loader takes the last one without a word."""
    for mapping in _mappings(root):
        lines: dict[tuple[str, str], int] = {}
        for key, _ in mapping.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != _MERGE:
                name = (key.tag, key.value)
                if name in lines:
                    says = f"{key.value} is given twice; first in line {lines[name]}"
                    raise yaml.MarkedYAMLError(problem=says, problem_mark=key.start_mark)
                lines[name] = key.start_mark.line + 1


def _mappings(root: Node) -> Iterator[yaml.MappingNode]:
    """Every mapping below a node, once: an alias leads to a node that was seen before."""
    seen: set[int] = set()
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if id(node) in seen or isinstance(node, yaml.ScalarNode):
            continue
        seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            yield node
            waiting += [part for pair in node.value for part in pair]
        else:
            waiting += node.value
