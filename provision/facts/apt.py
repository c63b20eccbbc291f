"""What apt offers, what it did, and who holds its locks."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .answers import int_of, output, plain, quote, rows, text_of
from .known import Unknown
from .record import record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..recording.model import Answer


@record
class Origin:
    """Where one version comes from: `https://…` with `bookworm/non-free`, or a local file."""

    priority: int
    uri: str
    suite: str

    @property
    def is_archive(self) -> bool:
        return not self.uri.startswith("/")


@record
class Offer:
    """apt's view of one package. `versions` in apt's order (newest first), `origins` by version."""

    installed: str | None
    candidate: str | None
    versions: tuple[str, ...]
    origins: Mapping[str, tuple[Origin, ...]]

    def archives(self, version: str | None) -> tuple[Origin, ...]:
        """The archives that carry a version; none for one that is only installed."""
        return tuple(o for o in self.origins.get(version or "", ()) if o.is_archive)


@record
class AptEvent:
    """One run of apt. `upgraded` has (old, new) by package, `installed` and `removed` the version."""

    start: str
    command: str
    installed: Mapping[str, str]
    upgraded: Mapping[str, tuple[str, str]]
    removed: Mapping[str, str]
    error: str

    @property
    def unattended(self) -> bool:
        return "unattended-upgrade" in self.command


@record
class Lock:
    """A lock of dpkg or apt that a process holds now."""

    path: str
    pid: int
    program: str


_VERSION = re.compile(r"\s*(?:\*\*\*\s+)?(\S+)(?:\s+(-?\d{1,6}))?(?:\s+\(phased [^)]*\))?\s*")

_SOURCE = re.compile(r"\s*(-?\d{1,6})\s+(/\S*|[a-z][a-z0-9+-]*:\S+)(?:\s+(\S+))?.*")


def policy(answer: Answer) -> Mapping[str, Offer] | Unknown:
    """`apt-cache policy NAME…`. A name that apt does not know is not in the mapping."""
    text = output(answer)
    if isinstance(text, Unknown):
        return text
    offers: dict[str, Offer] = {}
    for block in re.split(r"\n(?=\S)", text.strip("\n")):
        if not block.strip():
            continue
        read = _offer(block, answer.item)
        if isinstance(read, Unknown):
            return read
        offers[read[0]] = read[1]
    return offers


def _offer(block: str, item: str) -> tuple[str, Offer] | Unknown:
    lines = [line for line in block.splitlines() if line.strip()]
    heads = [re.fullmatch(r"\s*(Installed|Candidate):\s*(\S.*)", line) for line in lines[1:3]]
    installed, candidate = (heads[0], heads[1]) if len(heads) == 2 else (None, None)
    if not lines[0].endswith(":") or installed is None or candidate is None:
        return Unknown(f"apt-cache policy: {quote(block)}", item)
    versions: list[str] = []
    origins: dict[str, tuple[Origin, ...]] = {}
    table = False
    for line in lines[3:]:
        if line.strip() == "Version table:":
            table = True
        elif not table:
            continue  # `Package pin:` stands above the table
        elif source := _SOURCE.fullmatch(line):
            if not versions:
                return Unknown(f"apt-cache policy: a source without a version: {quote(line)}", item)
            origin = Origin(int(source[1]), source[2], source[3] or "")
            origins[versions[-1]] = (*origins[versions[-1]], origin)
        elif version := _VERSION.fullmatch(line):
            versions.append(version[1])
            origins[version[1]] = ()
        else:
            return Unknown(f"apt-cache policy: {quote(line)}", item)
    if not table:
        return Unknown(f"apt-cache policy: cut after {quote(block)}", item)
    name = lines[0].rstrip(":").partition(":")[0]
    return name, Offer(_none(installed[2]), _none(candidate[2]), tuple(versions), origins)


def _none(version: str) -> str | None:
    return None if version == "(none)" else version.strip()


def history(answer: Answer) -> tuple[AptEvent, ...] | Unknown:
    """The runs that the tail of apt's history log holds whole, oldest first; none where there is no log."""
    if answer.missing:
        return ()
    if answer.silence is not None:
        return Unknown(answer.silence, answer.item)
    if answer.rc not in (0, None):
        return Unknown(f"{answer.item} ended with status {answer.rc}: {quote(answer.stderr)}", answer.item)
    events = []
    for block in re.split(r"\n[ \t]*\n", plain(answer.text)):
        values: dict[str, str] = {}
        for line in block.splitlines():
            key, sign, value = line.partition(": ")
            if sign and re.fullmatch(r"[A-Z][A-Za-z-]+", key):
                values[key] = value.strip()
        if "Start-Date" in values:
            events.append(_event(values))
    return tuple(events)


def _event(values: dict[str, str]) -> AptEvent:
    def listed(*keys: str) -> list[tuple[str, list[str]]]:
        """`name:arch (version)` or `name:arch (old, new)`, parted by commas outside the brackets."""
        found = []
        for key in keys:
            for name, versions in re.findall(r"([^\s,()]+) \(([^)]*)\)", values.get(key, "")):
                parts = [v.strip() for v in versions.split(",") if v.strip() != "automatic"]
                found.append((name.partition(":")[0], parts))
        return found

    return AptEvent(
        values["Start-Date"],
        values.get("Commandline", ""),
        {name: versions[0] for name, versions in listed("Install", "Reinstall") if versions},
        {name: (v[0], v[1]) for name, v in listed("Upgrade", "Downgrade") if len(v) == 2},
        {name: versions[0] for name, versions in listed("Remove", "Purge") if versions},
        values.get("Error", ""),
    )


def locks(answer: Answer) -> tuple[Lock, ...] | Unknown:
    found = rows(answer)
    if isinstance(found, Unknown):
        return found
    result = []
    for row in found:
        path, pid = text_of(row, "path"), int_of(row, "pid")
        if path is None or pid is None:
            return Unknown(f"apt.locks: an entry without path or pid: {quote(str(row))}", answer.item)
        result.append(Lock(path, pid, text_of(row, "program") or ""))
    return tuple(result)


def newest_list(answer: Answer) -> int | Unknown | None:
    """When apt last fetched its lists, in seconds since 1970; None where it never did."""
    found = rows(answer)
    if isinstance(found, Unknown):
        return found
    times = [time for row in found if (time := int_of(row, "modified")) is not None]
    return max(times, default=None)
