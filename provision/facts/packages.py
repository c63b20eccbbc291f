"""Installed packages and what is held back, from dpkg or rpm."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .answers import output, quote
from .known import Unknown
from .record import record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..recording.model import Answer

# dpkg-query(1), db:Status-Abbrev: what is wanted, what is, and whether it is broken.
_STATES = {
    "n": "not-installed",
    "c": "config-files",
    "H": "half-installed",
    "U": "unpacked",
    "F": "half-configured",
    "W": "triggers-awaited",
    "t": "triggers-pending",
    "i": "installed",
}
_WORKS = frozenset({"installed", "triggers-awaited", "triggers-pending"})
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9+._-]*(:[a-z0-9-]+)?")


@record
class Package:
    """One package. `state` is dpkg's word; `held` is dpkg's own hold flag."""

    name: str
    version: str
    arch: str
    state: str
    held: bool = False
    broken: bool = False


@record
class Packages:
    """All packages that the manager (`dpkg` or `rpm`) knows.

    `installed` has one entry a name, the host's own architecture before a foreign one; `all` has
    every row, those that are removed or half-way included.
    """

    manager: str
    all: tuple[Package, ...]
    installed: Mapping[str, Package]

    def get(self, name: str) -> Package | None:
        """The installed package of that name; None where it is known not to be installed."""
        return self.installed.get(name)

    @property
    def half_configured(self) -> tuple[Package, ...]:
        """Packages that an interrupted transaction left between two states."""
        return tuple(
            p for p in self.all if p.broken or p.state not in {"installed", "config-files", "not-installed"}
        )

    @property
    def left_over(self) -> tuple[Package, ...]:
        """Packages that are removed but not purged."""
        return tuple(p for p in self.all if p.state == "config-files")


def packages(dpkg: Answer, rpm: Answer) -> Packages | Unknown:
    """dpkg's list, or rpm's where there is no dpkg."""
    found = _dpkg(dpkg)
    if isinstance(found, Unknown) and rpm.silence is None:
        return _rpm(rpm)
    return found


def _dpkg(answer: Answer) -> Packages | Unknown:
    text = output(answer)
    if isinstance(text, Unknown):
        return text
    result = []
    for line in text.splitlines():
        if not line.strip():
            continue
        fields = line.split("\t")
        status = fields[0].strip(" ")
        if (
            len(fields) != 4
            or not re.fullmatch(r"[uihrp][ncHUFWti]R?", status)
            or not _NAME.fullmatch(fields[1])
        ):
            return Unknown(f"dpkg-query: unexpected line: {quote(line)}", answer.item)
        name = fields[1].partition(":")[0]
        result.append(
            Package(
                name,
                fields[2].strip(),
                fields[3].strip(),
                _STATES[status[1]],
                status[0] == "h",
                "R" in status,
            )
        )
    return _collect("dpkg", result, answer)


def _rpm(answer: Answer) -> Packages | Unknown:
    """The rpm twin: the same four columns, of which rpm itself has no status."""
    text = output(answer)
    if isinstance(text, Unknown):
        return text
    result = []
    for line in text.splitlines():
        if not line.strip():
            continue
        fields = [field.strip() for field in line.split("\t")]
        fields = fields[1:] if len(fields) == 4 else fields
        if len(fields) != 3 or not _NAME.fullmatch(fields[0]):
            return Unknown(f"rpm: unexpected line: {quote(line)}", answer.item)
        version = fields[1].removeprefix("(none):").removeprefix("0:")
        result.append(Package(fields[0], version, fields[2], "installed"))
    return _collect("rpm", result, answer)


def _collect(manager: str, found: list[Package], answer: Answer) -> Packages | Unknown:
    if not found:
        return Unknown(f"{answer.item}: no package was listed", answer.item)
    # The architecture that most packages have is the host's own.
    counts: dict[str, int] = {}
    for package in found:
        counts[package.arch] = counts.get(package.arch, 0) + (package.arch not in {"all", "noarch"})
    own = max(counts, key=lambda arch: counts[arch])
    installed: dict[str, Package] = {}
    for package in found:
        if package.state in _WORKS and (
            package.name not in installed or package.arch in {own, "all", "noarch"}
        ):
            installed[package.name] = package
    return Packages(manager, tuple(found), installed)


def holds(answer: Answer, installed: Packages | Unknown) -> frozenset[str] | Unknown:
    """`apt-mark showhold`; dpkg's own flag says the same where that was not asked."""
    text = output(answer)
    if isinstance(text, Unknown):
        if isinstance(installed, Packages) and installed.manager == "dpkg" and answer.silence is not None:
            return frozenset(p.name for p in installed.all if p.held)
        return text
    names = set()
    for line in text.split("\n"):
        if not line.strip():
            continue
        if not _NAME.fullmatch(line.strip()):
            return Unknown(f"apt-mark showhold: {quote(line)}", answer.item)
        names.add(line.strip().partition(":")[0])
    return frozenset(names)
