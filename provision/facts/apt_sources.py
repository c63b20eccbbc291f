"""Where apt gets packages from: /etc/apt/sources.list and its folder, in both formats."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .answers import output, quote
from .known import ABSENT, Absent, Unknown
from .record import record

if TYPE_CHECKING:
    from ..recording.model import Recording


@record
class AptSource:
    """One source that is switched on: a `deb` line, or a stanza of a .sources file."""

    path: str
    line: int
    types: tuple[str, ...]
    uris: tuple[str, ...]
    suites: tuple[str, ...]
    components: tuple[str, ...]
    signed_by: str
    enabled: bool


def sources(recording: Recording) -> tuple[AptSource, ...] | Absent | Unknown:
    """All sources of /etc/apt, in both formats; Absent where the host has no apt sources at all."""
    found: list[AptSource] = []
    read = False
    for item in recording.items:
        path = item.removeprefix("file:")
        if path == item or not re.fullmatch(r"/etc/apt/sources\.list(\.d/[^/]+\.(list|sources))?", path):
            continue
        answer = recording.answer(item)
        if answer.missing:
            continue
        text = output(answer)
        if isinstance(text, Unknown):
            return text
        parsed = _stanzas(path, text) if path.endswith(".sources") else _lines(path, text)
        if isinstance(parsed, Unknown):
            return parsed
        read = True
        found += parsed
    if read:
        return tuple(found)
    main = recording.file("/etc/apt/sources.list")
    return ABSENT if main.missing else Unknown(main.silence or "no apt source was read", main.item)


def _lines(path: str, text: str) -> list[AptSource] | Unknown:
    result = []
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.partition("#")[0].strip()
        if not line:
            continue
        found = re.fullmatch(r"(deb|deb-src)\s+(?:\[([^\]]*)\]\s+)?(\S+)\s+(\S+)(?:\s+(.*))?", line)
        if not found:
            return Unknown(f"{path}, line {number}: no apt source: {quote(line)}", f"file:{path}")
        kind, options, uri, suite, components = found.groups()
        signed = re.search(r"signed-by=(\S+)", options or "", re.IGNORECASE)
        result.append(
            AptSource(
                path,
                number,
                (kind,),
                (uri,),
                (suite,),
                tuple((components or "").split()),
                signed[1] if signed else "",
                True,
            )
        )
    return result


def _stanzas(path: str, text: str) -> list[AptSource] | Unknown:
    """deb822 of sources.list(5): fields may go on over indented lines."""
    result = []
    values: dict[str, str] = {}
    start, key = 0, ""
    for number, line in enumerate([*text.splitlines(), ""], 1):
        if not line.strip():
            if values:
                source = _stanza(path, start, values)
                if isinstance(source, Unknown):
                    return source
                result.append(source)
            values = {}
            continue
        if line.startswith("#"):
            continue
        if not values:
            start = number
        if line[0].isspace() and values:
            values[key] = f"{values[key]}\n{line.strip()}"
            continue
        name, sign, value = line.partition(":")
        if not sign:
            return Unknown(f"{path}, line {number}: no apt source: {quote(line)}", f"file:{path}")
        key = name.strip().lower()
        values[key] = value.strip()
    return result


def _stanza(path: str, line: int, values: dict[str, str]) -> AptSource | Unknown:
    if not {"types", "uris", "suites"} <= values.keys():
        return Unknown(f"{path}, line {line}: a source without Types, URIs or Suites", f"file:{path}")
    signed = values.get("signed-by", "").strip()
    return AptSource(
        path,
        line,
        tuple(values["types"].split()),
        tuple(values["uris"].split()),
        tuple(values["suites"].split()),
        tuple(values.get("components", "").split()),
        "a key in the file itself" if "BEGIN PGP" in signed else signed,
        values.get("enabled", "yes").strip().lower() not in {"no", "false", "off", "0"},
    )
