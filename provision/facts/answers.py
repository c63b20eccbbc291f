"""An answer's the text or document that a parser reads, or Unknown in the tool's own words."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from .known import Unknown

if TYPE_CHECKING:
    from collections.abc import Collection

    from ..recording.model import Answer

_CONTROL_SEQUENCE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07")
_LONGEST_QUOTE = 400


def plain(text: str) -> str:
    """Text without terminal escapes and byte order mark, with plain line ends."""
    text = _CONTROL_SEQUENCE.sub("", text.removeprefix("﻿"))
    return text.replace("\r\n", "\n").replace("\r", "\n")


def quote(text: str) -> str:
    """A tool's words on one line, short enough for a report."""
    words = " / ".join(line.strip() for line in plain(text).splitlines() if line.strip())
    return words if len(words) <= _LONGEST_QUOTE else words[: _LONGEST_QUOTE - 1] + "…"


def words(answer: Answer) -> str:
    """What the tool said on both of its streams (which of the two carries an error differs by tool)."""
    return plain("\n".join(part for part in (answer.text, answer.stderr) if part.strip()))


def output(answer: Answer, *, ok: Collection[int] = (0,)) -> str | Unknown:
    """The text of a command that ended well, or of a file that could be read; never a part of it.

    A recording may leave `rc` out (a capture from a bug report): then the text is taken as it is.
    """
    if (silence := answer.silence) is not None:
        return Unknown(silence, answer.item)
    if answer.rc is not None and answer.rc not in ok:
        said = quote(words(answer)) or "nothing was printed"
        return Unknown(f"{answer.item} ended with status {answer.rc}: {said}", answer.item)
    if answer.cut:
        return Unknown(f"{answer.item} was cut at the collector's limit", answer.item)
    if "stdout" not in answer.raw and "text" not in answer.raw:
        return Unknown(f"{answer.item} holds no text", answer.item)
    return plain(answer.text)


def document(answer: Answer, *keys: str) -> Any | Unknown:
    """The JSON document of an item: printed as text, or laid into the item itself.

    There it stands under one of `keys`, or is the only list that the item has.
    """
    if answer.silence is None and not {"stdout", "text"} & answer.raw.keys():
        for key in (*keys, "json"):
            if key in answer.raw:
                return answer.raw[key]
        lists = [value for key, value in answer.raw.items() if isinstance(value, list) and key != "argv"]
        if len(lists) == 1:
            return lists[0]
    text = output(answer)
    if isinstance(text, Unknown):
        return text
    return parse_json(text, answer.item)


def parse_json(text: str, item: str) -> Any | Unknown:
    """JSON of a text; Unknown with line and column where it is none."""
    try:
        return json.loads(text, parse_constant=_no_number)
    except json.JSONDecodeError as e:
        shown = quote(text)[:120] or "nothing"
        return Unknown(f"{item}: not JSON at line {e.lineno}, column {e.colno} ({e.msg}): {shown}", item)
    except _NoNumber as e:
        return Unknown(f"{item}: {e} is no number of JSON", item)
    except (RecursionError, ValueError):
        return Unknown(f"{item}: JSON nested too deep or with a number out of bounds", item)


class _NoNumber(ValueError):
    pass


def _no_number(word: str) -> float:
    """NaN and Infinity, which Python reads and JSON does not have."""
    raise _NoNumber(word)


def rows(answer: Answer, *keys: str) -> tuple[dict[str, Any], ...] | Unknown:
    """A JSON list of objects; one entry of another kind makes the whole list unknown."""
    value = document(answer, *keys)
    if isinstance(value, Unknown):
        return value
    if not isinstance(value, list) or not all(isinstance(row, dict) for row in value):
        return Unknown(f"{answer.item}: a JSON list of objects was expected", answer.item)
    return tuple(value)


def text_of(row: dict[str, Any], *keys: str) -> str | None:
    """The first of `keys` that holds a non-empty text or number, as text."""
    for key in keys:
        value = row.get(key)
        if isinstance(value, str) and value.strip():
            return value.strip()
        if isinstance(value, int | float) and not isinstance(value, bool):
            return str(value)
    return None


def int_of(row: dict[str, Any], *keys: str) -> int | None:
    """The first of `keys` that holds a whole number (older tools print it as text)."""
    for key in keys:
        value = row.get(key)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        if isinstance(value, str) and re.fullmatch(r"-?\d{1,18}", value.strip()):
            return int(value)
    return None


def flag_of(row: dict[str, Any], *keys: str) -> bool | None:
    """The first of `keys` that holds a yes or no, in any of the spellings that tools use."""
    for key in keys:
        value = row.get(key)
        if isinstance(value, bool):
            return value
        if value in (0, 1, "0", "1"):
            return value in (1, "1")
    return None


def key_values(text: str, item: str, *, separator: str = "=") -> dict[str, str] | Unknown:
    """Lines of KEY=VALUE; a line of another form makes the whole text unknown."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        key, sign, value = line.partition(separator)
        if not sign or not key.strip():
            return Unknown(f"{item}: unexpected line: {quote(line)}", item)
        found[key.strip()] = value.strip()
    return found
