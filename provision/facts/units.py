"""systemd units: `systemctl show` of several, and `systemctl cat` of one."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from .answers import output, quote
from .known import ABSENT, Absent, Unknown
from .record import record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..recording.model import Answer


@record
class UnitState:
    """`load` is `not-found` where the unit is not there. `exec_start` has one command line an entry,
    `listen` one address of a socket unit (`0.0.0.0:22`)."""

    load: str
    active: str
    enabled: str
    exec_start: tuple[str, ...]
    sub: str = ""
    result: str = ""
    listen: tuple[str, ...] = ()
    drop_ins: tuple[str, ...] = ()

    @property
    def exists(self) -> bool:
        return self.load not in {"not-found", ""}

    @property
    def runs(self) -> bool:
        """Active, which for a oneshot unit means that it did its work."""
        return self.active == "active"

    @property
    def starts_at_boot(self) -> bool:
        """Enabled for good; a static unit starts only where another one wants it."""
        return self.enabled in {"enabled", "alias", "linked", "generated", "indirect"}


def units(answer: Answer) -> Mapping[str, UnitState] | Absent | Unknown:
    """Blocks of KEY=VALUE, one a unit; Absent where the host has no systemd."""
    if answer.missing or "systemd does not run" in (answer.not_asked or ""):
        return ABSENT
    text = output(answer)
    if isinstance(text, Unknown):
        if "not been booted with systemd" in text.reason:
            return ABSENT
        return text
    found: dict[str, UnitState] = {}
    for block in re.split(r"\n[ \t]*\n", text.strip()):
        if not block.strip():
            continue
        state = _block(block, answer.item)
        if isinstance(state, Unknown):
            return state
        names, unit = state
        for name in names:
            # Of two that share a name, an alias of one that is not there says nothing.
            if name not in found or not found[name].exists:
                found[name] = unit
    if not found:
        return Unknown("systemctl show: nothing was printed", answer.item)
    return found


def _block(block: str, item: str) -> tuple[list[str], UnitState] | Unknown:
    values: dict[str, str] = {}
    commands: list[str] = []
    listen: list[str] = []
    for line in block.splitlines():
        key, sign, value = line.partition("=")
        if not sign or not re.fullmatch(r"[A-Za-z]+", key.strip()):
            return Unknown(f"systemctl show: unexpected line: {quote(line)}", item)
        if key == "ExecStart":
            commands += [part.strip() for part in re.findall(r"argv\[\]=(.*?) ; ignore_errors=", value)]
        elif key == "Listen":
            listen.append(value.partition(" (")[0].strip())
        else:
            values[key.strip()] = value.strip()
    if not values.get("Id") or "LoadState" not in values or "ActiveState" not in values:
        return Unknown(f"systemctl show: a unit without Id, LoadState or ActiveState: {quote(block)}", item)
    unit = UnitState(
        values["LoadState"],
        values["ActiveState"],
        values.get("UnitFileState", ""),
        tuple(commands),
        values.get("SubState", ""),
        values.get("Result", ""),
        tuple(listen),
        tuple(values.get("DropInPaths", "").split()),
    )
    return [values["Id"], *values.get("Names", "").split()], unit


@record
class UnitText:
    """The effective ExecStart of a unit's files, drop-ins included, split as systemd splits it."""

    exec_start: tuple[tuple[str, ...], ...]
    files: tuple[str, ...]


def unit_text(answer: Answer) -> UnitText | Absent | Unknown:
    """`systemctl cat`: files, each under a `# /path` line; an empty ExecStart= resets the list."""
    if answer.missing:
        return ABSENT
    text = output(answer)
    if isinstance(text, Unknown):
        return ABSENT if "No files found" in text.reason else text
    commands: list[tuple[str, ...]] = []
    files: list[str] = []
    for line in re.sub(r"\\\n\s*", " ", text).splitlines():
        if found := re.fullmatch(r"#\s+(/\S+)", line):
            files.append(found[1])
        if not line.startswith("ExecStart="):
            continue
        command = line.partition("=")[2].strip()
        if not command:
            commands.clear()
            continue
        try:
            commands.append(tuple(shlex.split(command.lstrip("-@+!:"))))
        except ValueError:
            return Unknown(f"{answer.item}: ExecStart cannot be split: {quote(line)}", answer.item)
    if not files:
        return Unknown(f"{answer.item}: no unit file in {quote(text) or 'an empty answer'}", answer.item)
    return UnitText(tuple(commands), tuple(files))


def listed(answer: Answer) -> Mapping[str, str] | Absent | Unknown:
    """`systemctl list-unit-files` or `list-units`, plain and without legend: the second word by name."""
    if answer.missing or "systemd does not run" in (answer.not_asked or ""):
        return ABSENT
    text = output(answer)
    if isinstance(text, Unknown):
        return text
    found = {}
    for line in text.splitlines():
        words = line.replace("●", " ").split()
        if words and (len(words) < 2 or "." not in words[0]):
            return Unknown(f"{answer.item}: unexpected line: {quote(line)}", answer.item)
        if words:
            found[words[0]] = words[1]
    return found


def failed(answer: Answer) -> tuple[str, ...] | Unknown:
    """`systemctl list-units --state=failed --plain --no-legend`: the names of failed units."""
    text = output(answer)
    if isinstance(text, Unknown):
        return text
    found = []
    for line in text.splitlines():
        words = line.replace("●", " ").split()
        if not words:
            continue
        if len(words) < 4 or words[2] != "failed" or "." not in words[0]:
            return Unknown(f"systemctl list-units: unexpected line: {quote(line)}", answer.item)
        found.append(words[0])
    return tuple(found)
