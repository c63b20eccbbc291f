"""What /etc/docker/daemon.json has to hold of ours. Everything else in it belongs to others and stays.

The file itself is merged on the host (module docker_settings): a recording has its secrets masked.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..facts.containers import DAEMON_JSON
from ..facts.docker_flags import TWICE_ALLOWED
from ..facts.known import Absent, Unknown
from .wanted import Why

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ..facts import Facts
    from ..profile.model import Profile

OURS = "/etc/gpu-provision/docker.json"
UNAPPLIED = "/var/lib/gpu-provision/docker/unapplied"
RUNTIME = "nvidia"
PROGRAM = "nvidia-container-runtime"
# Keys of which each entry is somebody's own.
ENTRIES = ("runtimes", "default-ulimits")
_SYS_RESOURCE = 1 << 24  # CAP_SYS_RESOURCE, capability.h
_UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40, "p": 1 << 50}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([bkmgtp]?)(?:i?b)?", re.IGNORECASE)
Path = tuple[str, ...]


@dataclass(frozen=True)
class Settings:
    """`values` are to be in the file, `remove` the paths of keys that we set once and want no longer.

    `ours` is the text of the list of what we set, None where we set nothing. `steps` tell what changes.
    """

    values: Mapping[str, Any] = field(default_factory=dict)
    remove: tuple[Path, ...] = ()
    ours: str | None = None
    steps: tuple[str, ...] = ()
    why: tuple[Why, ...] = ()
    refused: str | None = None


def settings(facts: Facts, profile: Profile) -> Settings:
    there, flags = facts.daemon_json, facts.docker_flags
    if isinstance(there, Unknown):
        return Settings(
            refused=f"{there.reason}. Nothing is put over a file that cannot be read; mend it by hand, and "
            "restart no docker before"
        )
    if isinstance(flags, Unknown):
        return Settings(refused=f"docker's command line is not known: {flags.reason}")
    now = {} if isinstance(there, Absent) else there
    given = {} if isinstance(flags, Absent) else flags
    if both := sorted((set(now) & set(given)) - TWICE_ALLOWED):
        return Settings(
            refused=f"{', '.join(both)} stands in {DAEMON_JSON} and on docker's command line; docker starts "
            "with one of them only. Take it out of the command line by a drop-in of docker.service "
            "(ExecStart=), or out of the file"
        )
    return _merge(facts, now, given, *_wanted(facts, profile, now))


def _merge(
    facts: Facts, now: Mapping[str, Any], given: Mapping[str, Any], values: dict[str, Any], why: list[Why]
) -> Settings:
    for key in sorted((set(values) & set(given)) - TWICE_ALLOWED):
        if key == "default-shm-size" and size_in_bytes(given[key][-1]) == size_in_bytes(values[key]):
            del values[key]
            continue
        return Settings(
            refused=f"docker's command line sets {key} to {' '.join(given[key])!r}, and docker starts with "
            f"that or with {DAEMON_JSON}, not with both. Take it out of the command line, or the variable "
            "out of the profile"
        )
    before = _ours(facts)
    mine = {path: value for path, value in leaves(values) if _at(now, path) != value or path in before}
    # What somebody has changed since is theirs.
    remove = tuple(p for p, value in before.items() if _at(values, p) is None and _at(now, p) == value)
    steps = [
        f"set {'.'.join(path)} in {DAEMON_JSON} to {json.dumps(value)}"
        for path, value in leaves(values)
        if _at(now, path) != value
    ]
    steps += [f"take {'.'.join(path)} out of {DAEMON_JSON}" for path in remove]
    return Settings(values, remove, _listing(mine), tuple(steps), tuple(why))


def _wanted(facts: Facts, profile: Profile, now: Mapping[str, Any]) -> tuple[dict[str, Any], list[Why]]:
    runtime = now.get("runtimes", {}).get(RUNTIME)
    adopted = isinstance(runtime, dict) and str(runtime.get("path", "")).rpartition("/")[2] == PROGRAM
    values: dict[str, Any] = {
        "runtimes": {RUNTIME: runtime if adopted else {"path": PROGRAM, "runtimeArgs": []}}
    }
    if profile["container_toolkit_default_runtime"]:
        values["default-runtime"] = RUNTIME
    if size := profile["container_toolkit_default_shm_size"]:
        same = size_in_bytes(now.get("default-shm-size")) == size_in_bytes(size)
        values["default-shm-size"] = now["default-shm-size"] if same else str(size)
    limits, why = _limits(facts, profile)
    if limits:
        values["default-ulimits"] = limits
    return values, why


def _limits(facts: Facts, profile: Profile) -> tuple[dict[str, Any], list[Why]]:
    found, why = {}, []
    # What jobs on the GPUs need where the profile bounds nobody (NVIDIA's containers ask for both).
    asked = {
        "memlock": profile["limits_memlock"] or "unlimited",
        "stack": profile["container_toolkit_default_stack"],
    }
    for name, value in asked.items():
        if value is None:
            continue
        number = -1 if str(value) == "unlimited" else int(value)
        most = _most(facts, name)
        if most is not None and (number == -1 or number > most):
            says = (
                f"{most} bytes: this host may not raise limits (CAP_SYS_RESOURCE), and no container would "
                "start with more"
            )
            why.append(Why(f"default-ulimits.{name}", says, "setrlimit(2)"))
            number = most
        found[name] = {"Name": name, "Hard": number, "Soft": number}
    return found, why


def _most(facts: Facts, name: str) -> int | None:
    """The highest limit that docker can give on a host that may raise none; None where there is no such."""
    rights, limits = facts.rights, facts.limits
    if isinstance(rights, Unknown) or rights.capabilities is None or rights.capabilities & _SYS_RESOURCE:
        return None
    if isinstance(limits, Unknown):
        return None
    return limits.services.get("dockerd", limits.session).get(name, (None, None))[1]


def size_in_bytes(value: Any) -> int | None:
    """A size as docker reads it: 1024 bytes a K. None for what is no size."""
    found = _SIZE.fullmatch(str(value).strip()) if value is not None else None
    return int(float(found[1]) * _UNITS[found[2].lower()]) if found else None


def leaves(values: Mapping[str, Any]) -> Iterator[tuple[Path, Any]]:
    """Each setting with its path: an entry of runtimes or default-ulimits is one, as is any other key."""
    for key, value in values.items():
        if key in ENTRIES:
            for name, entry in value.items():
                yield (key, name), entry
        else:
            yield (key,), value


def _at(values: Mapping[str, Any], path: Path) -> Any:
    """The value at a path; None where there is none (docker's settings have no null)."""
    found: Any = values
    for part in path:
        found = found.get(part) if isinstance(found, dict) else None
    return found


def _ours(facts: Facts) -> dict[Path, Any]:
    """What the list of an earlier run says that we set. A list that cannot be read names nothing."""
    text = facts.file(OURS)
    try:
        rows = json.loads(text) if isinstance(text, str) else []
        return {tuple(row["path"]): row["value"] for row in rows}
    except (ValueError, KeyError, TypeError):
        return {}


def _listing(mine: Mapping[Path, Any]) -> str | None:
    rows = [json.dumps({"path": list(path), "value": value}) for path, value in mine.items()]
    return "[\n  " + ",\n  ".join(rows) + "\n]\n" if rows else None
