"""CUDA toolkits: those below /usr/local, which of them is the default and by whose choice, and conda's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .answers import flag_of, output, quote, rows, text_of
from .known import ABSENT, Absent, Unknown
from .record import record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..recording.model import Answer


@record
class Toolkit:
    """One CUDA toolkit below /usr/local; `default` marks what /usr/local/cuda points at."""

    path: str
    version: str | None
    default: bool
    compiler: bool


@record
class CondaToolkit:
    """A toolkit in an environment of conda, which only programs of that environment see."""

    path: str
    version: str


@record
class Alternative:
    """A group of update-alternatives. `automatic`: the highest priority wins, until somebody chooses.

    `choices` has the priority by path.
    """

    automatic: bool
    link: str
    choices: Mapping[str, int]


def toolkits(answer: Answer) -> tuple[Toolkit, ...] | Unknown:
    found = rows(answer)
    if isinstance(found, Unknown):
        return found
    result = []
    for row in found:
        path = text_of(row, "path")
        if path is None:
            return Unknown(f"cuda.installed: an entry without a path: {quote(str(row))}", answer.item)
        default, compiler = flag_of(row, "default") is True, flag_of(row, "nvcc") is True
        result.append(Toolkit(path, text_of(row, "version"), default, compiler))
    return tuple(result)


def conda(answer: Answer) -> tuple[CondaToolkit, ...] | Unknown:
    found = rows(answer)
    if isinstance(found, Unknown):
        return found
    result = []
    for row in found:
        path, version = text_of(row, "path"), text_of(row, "version")
        if path is None or version is None:
            return Unknown(f"cuda.conda: an entry that is not whole: {quote(str(row))}", answer.item)
        result.append(CondaToolkit(path, version))
    return tuple(result)


def alternative(answer: Answer) -> Alternative | Absent | Unknown:
    """A file of /var/lib/dpkg/alternatives: mode, link, slaves up to an empty line, then choices.

    A choice is its path, its priority, and one line a slave (dpkg's update-alternatives.c, alternative_load).
    """
    if answer.missing:
        return ABSENT
    text = output(answer)
    if isinstance(text, Unknown):
        return text
    lines = text.split("\n")
    if len(lines) < 3 or lines[0] not in ("auto", "manual") or "" not in lines[2:]:
        return Unknown(f"{answer.item}: no group of alternatives: {quote(text)}", answer.item)
    end = lines.index("", 2)
    slaves, rest = (end - 2) // 2, lines[end + 1 :]
    choices: dict[str, int] = {}
    while rest and rest[0]:
        if len(rest) < 2 or not rest[1].lstrip("-").isdigit():
            return Unknown(f"{answer.item}: a choice without its priority: {quote(rest[0])}", answer.item)
        choices[rest[0]] = int(rest[1])
        rest = rest[2 + slaves :]
    return Alternative(lines[0] == "auto", lines[1], choices)
