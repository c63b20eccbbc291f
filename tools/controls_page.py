"""Writes docs/controls.md from the controls themselves: `.venv/bin/python tools/controls_page.py`.

What a control asks for and advises stands in the calls of `failed` and `warned` that its function reaches;
they are read from the source, so that the page cannot say anything else.
"""

from __future__ import annotations

import ast
import inspect
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from provision.controls import all_controls
from provision.controls.reading import table

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

    from provision.controls.model import Control

PAGE = Path(__file__).parent.parent / "docs" / "controls.md"
_JUDGE = {"failed": "fail", "warned": "warn"}
_HEAD = """\
# Controls

Each rule that `gpu-provision audit` judges. This page is made from the code by `tools/controls_page.py`; do
not edit it by hand. Where a value is worked out for each host, it stands as `…`; thresholds and classes with
their sources are in `provision/controls/data/`.

**Required** means that an `unknown` makes the exit code 3; a profile may require more. **Role** is the role
that mends a fail or warn, where one can, and **disrupts** is what mending it disturbs.
"""


def page() -> str:
    """The whole page."""
    controls = all_controls()
    lines = [_HEAD, "| control | passes where | severity | required | role | disrupts |", "| --- " * 6 + "|"]
    lines += [
        f"| [`{c.name}`](#{c.name.replace('.', '')}) | {c.title} | {c.severity} "
        f"| {'yes' if c.required else ''} | {f'`{c.role}`' if c.role else ''} "
        f"| {c.disrupts if c.disrupts != 'nothing' else ''} |"
        for c in controls.values()
    ]
    for control in controls.values():
        lines += ["", *_section(control)]
    lines += ["", *_xids()]
    return "\n".join(lines) + "\n"


def _section(control: Control) -> Iterator[str]:
    yield f"## {control.name}"
    yield ""
    yield f"{control.title}."
    if control.needs:
        yield ""
        yield f"Judged once these hold: {', '.join(f'`{name}`' for name in control.needs)}."
    told = dict.fromkeys(_verdicts(control))
    if told:
        yield ""
    for status, expected, advice in told:
        asked = expected if expected.strip("… ") else "what is worked out for the host"
        yield f"- **{status}** unless: {asked}" + (f". *{advice}*" if advice.strip("…") else "")


def _xids() -> Iterator[str]:
    """What `gpu.xid` makes of each event."""
    data = table("xids")
    yield "## Xid events"
    yield ""
    yield "What `gpu.xid` makes of each event in the kernel's log; one that is not listed warns."
    for name, about in data["classes"].items():
        yield ""
        yield f"**{name}** ({about['status']}): *{about['advice']}*"
        yield ""
        yield from (f"- {code}: {row['says']}" for code, row in data["codes"].items() if row["class"] == name)


def _verdicts(control: Control) -> Iterator[tuple[str, str, str]]:
    """Status, what is expected and what is advised of each call that the control's function reaches."""
    module = sys.modules[control.judge.__module__]
    functions = _functions(module)
    seen: set[str] = set()
    waiting = [control.judge.__name__]
    while waiting:
        name = waiting.pop(0)
        if name in seen or name not in functions:
            continue
        seen.add(name)
        values = {**_constants(module), **_locals(functions[name])}
        for call in (node for node in ast.walk(functions[name]) if isinstance(node, ast.Call)):
            called = call.func.id if isinstance(call.func, ast.Name) else ""
            for judge in _judges(called, functions[name]):
                advice = next((k.value for k in call.keywords if k.arg == "advice"), None)
                yield (
                    _JUDGE[judge],
                    _words(call.args[0], values) if call.args else "",
                    _words(advice, values) if advice else "",
                )
            waiting.append(called)


def _judges(called: str, function: ast.FunctionDef) -> list[str]:
    """The verdicts that a name may stand for: itself, or `judge = failed if … else warned`."""
    if called in _JUDGE:
        return [called]
    value = _locals(function).get(called)
    if value is None:
        return []
    return sorted({n.id for n in ast.walk(value) if isinstance(n, ast.Name) and n.id in _JUDGE})


@cache
def _functions(module: ModuleType) -> dict[str, ast.FunctionDef]:
    tree = ast.parse(inspect.getsource(module))
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}


@cache
def _constants(module: ModuleType) -> dict[str, ast.expr]:
    return _assigned(ast.parse(inspect.getsource(module)).body)


def _locals(function: ast.FunctionDef) -> dict[str, ast.expr]:
    return _assigned([node for node in ast.walk(function) if isinstance(node, ast.stmt)])


def _assigned(body: list[ast.stmt]) -> dict[str, ast.expr]:
    return {
        node.targets[0].id: node.value
        for node in body
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)
    }


def _words(node: ast.expr, values: dict[str, ast.expr], depth: int = 0) -> str:
    """A text of the source as it is shown; what only a host settles is `…`."""
    if isinstance(node, ast.Constant):
        return str(node.value).strip()
    if isinstance(node, ast.JoinedStr):
        parts = (p.value if isinstance(p, ast.Constant) else _inner(p, values, depth) for p in node.values)
        return "".join(map(str, parts)).strip()
    if isinstance(node, ast.IfExp):
        told = (_words(part, values, depth + 1) for part in (node.body, node.orelse))
        return " or ".join(dict.fromkeys(filter(None, told)))
    if isinstance(node, ast.Name) and node.id in values and depth < 4:
        return _words(values[node.id], values, depth + 1)
    return "…"


def _inner(part: ast.expr, values: dict[str, ast.expr], depth: int) -> str:
    inner = part.value if isinstance(part, ast.FormattedValue) else part
    found = _words(inner, values, depth + 1) if isinstance(inner, ast.Name) else "…"
    return found or "…"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
