"""What the command line of docker's daemon sets: a key that stands there and in daemon.json stops it.

(moby, daemon/config: "the following directives are specified both as a flag and in the configuration file")
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from .known import Absent, Unknown
from .units import unit_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..recording.model import Answer

# Flags whose key in daemon.json has another name (moby, cmd/dockerd/config.go).
_KEYS = {
    "D": "debug", "G": "group", "H": "hosts", "b": "bridge", "g": "data-root", "l": "log-level",
    "p": "pidfile", "s": "storage-driver", "add-runtime": "runtimes", "graph": "data-root",
    "authorization-plugin": "authorization-plugins", "cdi-spec-dir": "cdi-spec-dirs",
    "default-address-pool": "default-address-pools", "default-ulimit": "default-ulimits",
    "dns-opt": "dns-opts", "exec-opt": "exec-opts", "host": "hosts", "label": "labels",
    "insecure-registry": "insecure-registries", "log-opt": "log-opts",
    "registry-mirror": "registry-mirrors", "storage-opt": "storage-opts",
}  # fmt: skip
# These may stand in both places (moby, daemon/config/config.go: skipDuplicates), or name the file itself.
TWICE_ALLOWED = frozenset({"runtimes", "config-file", "validate"})


def flags(unit: Answer, defaults: Answer) -> Mapping[str, tuple[str, ...]] | Absent | Unknown:
    """Values by the key that daemon.json would have for them. Absent where there is no unit of docker's.

    `$DOCKER_OPTS` and its like are filled in from the unit's Environment= and from /etc/default/docker.
    """
    text = unit_text(unit)
    if isinstance(text, Unknown | Absent):
        return text
    filled_in = any("$" in word for command in text.exec_start for word in command)
    if filled_in and not defaults.missing and defaults.silence is not None:
        return Unknown(defaults.silence, defaults.item)
    known = {**_environment(unit.text), **_assignments("" if defaults.missing else defaults.text)}
    words: list[str] = []
    for command in text.exec_start:
        for word in command[1:]:
            whole = re.fullmatch(r"\$(\w+)", word)
            filled = re.sub(r"\$\{(\w+)\}", lambda found: known.get(found[1], ""), word)
            words += known.get(whole[1], "").split() if whole else [filled]
    return _read(words)


def _read(words: list[str]) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for place, word in enumerate(words):
        if not re.match(r"--?[A-Za-z]", word):
            continue
        name, sign, value = word.lstrip("-").partition("=")
        following = words[place + 1] if place + 1 < len(words) else ""
        if not sign:
            value = "" if following.startswith("-") else following
        key = _KEYS.get(name, name)
        found[key] = (*found.get(key, ()), value)
    return found


def _environment(unit: str) -> dict[str, str]:
    """The unit's own Environment= lines."""
    found: dict[str, str] = {}
    for line in re.findall(r"(?m)^Environment=(.*)$", unit):
        for word in _split(line):
            name, sign, value = word.partition("=")
            if sign:
                found[name] = value
    return found


def _assignments(text: str) -> dict[str, str]:
    """NAME="value" lines of a shell's file."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        if assigned := re.fullmatch(r"\s*(?:export\s+)?(\w+)=(.*)", line):
            found[assigned[1]] = " ".join(_split(assigned[2]))
    return found


def _split(line: str) -> list[str]:
    try:
        return shlex.split(line, comments=True)
    except ValueError:
        return line.split()
