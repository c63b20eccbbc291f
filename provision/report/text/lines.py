"""Lines on a console: labels, hanging indents, and no escape sequence of a host's let through."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.console import Console

LABEL = 10

Mend = Callable[[str, str], str]
"""(host, role) -> the command line that runs this role on this host."""


def console(stream: TextIO) -> Console:
    """A console on `stream`: colours on a terminal only (NO_COLOR is honoured), long lines elsewhere."""
    from ..screen import Screen

    out = Screen(file=stream, highlight=False, soft_wrap=not stream.isatty(), emoji=False, markup=False)
    if out.width < 1:  # COLUMNS=0: nothing would be printed at all
        out.width = 80
    return out


def labelled(out: Console, rows: Iterable[tuple[str, str]], indent: str, style: str = "") -> None:
    """Print label and value a row; the value hangs beside its label however many lines it takes."""
    room = max(20, out.width - len(indent) - LABEL)
    for label, value in rows:
        lines = [part for given in value.splitlines() or [""] for part in _fit(given, room, out.soft_wrap)]
        for at, text in enumerate(lines):
            line(out, [(f"{indent}{'' if at else label:<{LABEL - 1}} ", "dim"), (text, style)])


def _fit(text: str, room: int, whole: bool) -> list[str]:
    return [text] if whole else textwrap.wrap(text, room, drop_whitespace=False) or [""]


def line(out: Console, parts: Iterable[tuple[str, str]]) -> None:
    from rich.text import Text

    out.print(Text.assemble(*[(printable(text), style) for text, style in parts]))


def printable(text: str) -> str:
    """Text of a host as a terminal may show it: no escape sequence gets through."""
    return "".join(c if c.isprintable() else " " if c == "\t" else "\ufffd" for c in text)


def duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{seconds:.1f} s" if seconds < 10 else f"{rest} s"
