"""Container engines: which one is there, how docker is set up, what CDI names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from .answers import document, int_of, parse_json, quote, rows, text_of, words
from .known import ABSENT, Absent, Maybe, Unknown
from .record import record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..recording.model import Answer
    from .packages import Packages
    from .units import UnitState

DAEMON_JSON = "/etc/docker/daemon.json"
# Package, engine, and whose build it is.
_ENGINES = (
    ("docker-ce", "docker", "docker"),
    ("docker.io", "docker", "distribution"),
    ("moby-engine", "docker", "distribution"),
    ("containerd.io", "containerd", "docker"),
    ("containerd", "containerd", "distribution"),
    ("podman", "podman", "distribution"),
    ("cri-o", "cri-o", "distribution"),
)


@record
class Engine:
    """One engine on the host. `build` is `docker` (docker.com's packages), `distribution` or `snap`."""

    name: str
    build: str
    package: str
    version: str


@record
class Docker:
    """What the running docker daemon says of itself. `runtimes` maps a name to its program."""

    version: str
    cgroup_driver: Maybe[str]
    cgroup_version: Maybe[str]
    runtimes: Mapping[str, str]
    default_runtime: Maybe[str]
    root_dir: Maybe[str]
    storage_driver: Maybe[str]
    live_restore: Maybe[bool]
    containers_running: Maybe[int]
    cdi_dirs: tuple[str, ...]
    warnings: tuple[str, ...]


@record
class Started:
    """Seconds since 1970: when dockerd started, and when the hook of the toolkit came; None where there
    is none.
    """

    dockerd: float | None
    hook: float | None

    @property
    def before_the_hook(self) -> bool:
        """dockerd looks for the hook only as it starts (moby, daemon/nvidia_linux.go); `--gpus` needs it."""
        return self.dockerd is not None and self.hook is not None and self.dockerd < self.hook


@record
class CdiSpec:
    """One CDI specification and the driver versions that its library names carry."""

    path: str
    versions: tuple[str, ...]
    kind: str | None
    devices: tuple[str, ...]


def engines(
    packages: Packages | Unknown, units: Mapping[str, UnitState] | Absent | Unknown
) -> tuple[Engine, ...] | Unknown:
    """Engines by their packages; docker from a snap has none and shows by its unit."""
    if isinstance(packages, Unknown):
        return packages
    found = []
    for package, name, build in _ENGINES:
        if (installed := packages.get(package)) is not None:
            found.append(Engine(name, build, package, installed.version))
    snap = snap_docker(units)
    return (*found, snap) if snap else tuple(found)


def snap_docker(units: Mapping[str, UnitState] | Absent | Unknown) -> Engine | None:
    """docker from a snap, by its unit."""
    snap = units.get("snap.docker.dockerd.service") if isinstance(units, dict) else None
    return Engine("docker", "snap", "docker", "") if snap is not None and snap.exists else None


def docker(answer: Answer) -> Docker | Absent | Unknown:
    """`docker info` as JSON; Absent where there is no docker program. A daemon that is down gives Unknown."""
    if answer.missing:
        return ABSENT
    value = document(answer)
    if isinstance(value, Unknown):
        return value
    if not isinstance(value, dict):
        return Unknown(f"docker info: {quote(words(answer))}", answer.item)
    errors, version = value.get("ServerErrors"), text_of(value, "ServerVersion")
    if errors or version is None:
        said = "; ".join(str(e) for e in errors) if isinstance(errors, list) else "no server answered"
        return Unknown(f"docker info: {quote(said)}", answer.item)

    def text(key: str) -> Maybe[str]:
        found = text_of(value, key)
        return found if found is not None else Unknown(f"docker info tells no {key}", answer.item)

    live, running = value.get("LiveRestoreEnabled"), int_of(value, "ContainersRunning")
    return Docker(
        version,
        text("CgroupDriver"),
        text("CgroupVersion"),
        _runtimes(value.get("Runtimes")),
        text("DefaultRuntime"),
        text("DockerRootDir"),
        text("Driver"),
        live if isinstance(live, bool) else Unknown("docker info tells no LiveRestoreEnabled", answer.item),
        running if running is not None else Unknown("docker info tells no ContainersRunning", answer.item),
        _texts(value.get("CDISpecDirs")),
        _texts(value.get("Warnings")),
    )


def _runtimes(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        return {}
    return {
        str(name): (text_of(about, "path") or "") if isinstance(about, dict) else ""
        for name, about in value.items()
    }


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(entry for entry in value if isinstance(entry, str)) if isinstance(value, list) else ()


# What docker reads into a fixed type and stops at where another one stands (dockerd(8), "Daemon configuration
# file").
_LISTS = (
    *("hosts", "dns", "dns-opts", "dns-search", "exec-opts", "insecure-registries", "labels"),
    *("registry-mirrors", "storage-opts", "cdi-spec-dirs", "authorization-plugins"),
)
_SHAPES: dict[str, tuple[type, str]] = {
    **dict.fromkeys(_LISTS, (list, "list")),
    **dict.fromkeys(("runtimes", "log-opts", "default-ulimits", "features"), (dict, "object")),
    **dict.fromkeys(("data-root", "default-runtime", "log-driver", "storage-driver"), (str, "text")),
}


def daemon_json(text: str | Absent | Unknown) -> dict[str, Any] | Absent | Unknown:
    """/etc/docker/daemon.json: an empty file sets nothing, all but JSON stops docker.

    A name that stands twice in one object is Unknown: docker takes the last, and whoever wrote the file may
    have meant either.
    """
    if not isinstance(text, str):
        return text
    if not text.strip():
        return {}
    value = parse_json(text, DAEMON_JSON)
    if isinstance(value, Unknown):
        return value
    if not isinstance(value, dict):
        return Unknown(f"{DAEMON_JSON} holds no JSON object: {quote(text)}", f"file:{DAEMON_JSON}")
    wrong = [
        f"{key} is no {word}"
        for key, (kind, word) in _SHAPES.items()
        if key in value and not isinstance(value[key], kind)
    ]
    if wrong:
        return Unknown(f"{DAEMON_JSON}: {'; '.join(wrong)}", f"file:{DAEMON_JSON}")
    if (second := _twice(text)) is not None:
        name, line, column = second
        said = f"{DAEMON_JSON}: {name} stands a second time in its object at line {line}, column {column}"
        return Unknown(said, f"file:{DAEMON_JSON}")
    return value


_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:]')


def _twice(text: str) -> tuple[str, int, int] | None:
    """The first name in valid JSON that its object has already, with line and column."""
    open_: list[set[str] | None] = []
    last = None
    for token in _TOKEN.finditer(text):
        kind = token[0]
        if kind in "{[":
            open_.append(set() if kind == "{" else None)
        elif kind in "}]":
            open_.pop()
        elif kind != ":":
            last = token
        elif last is not None and (names := open_[-1]) is not None:
            if last[0] in names:
                before = text[: last.start()]
                return last[0], before.count("\n") + 1, last.start() - before.rfind("\n")
            names.add(last[0])
    return None


def daemon_json_form(answer: Answer) -> str | Unknown | None:
    """What older daemons do not read although nothing in it is wrong; None where there is nothing of that."""
    if answer.missing:
        return None
    if answer.silence is not None or "text" not in answer.raw:
        return Unknown(answer.silence or f"{answer.item} holds no text", answer.item)
    if not answer.text.strip("\ufeff \t\r\n"):
        return "is empty"
    return "begins with a byte order mark" if answer.text.startswith("\ufeff") else None


def started(answer: Answer) -> Started | Unknown:
    value = document(answer)
    if isinstance(value, Unknown):
        return value
    if not isinstance(value, dict):
        return Unknown(f"{answer.item}: a JSON object was expected", answer.item)

    def seconds(key: str) -> float | None:
        found = value.get(key)
        return float(found) if isinstance(found, int | float) and not isinstance(found, bool) else None

    return Started(seconds("dockerd"), seconds("hook"))


def cdi(answer: Answer) -> tuple[CdiSpec, ...] | Unknown:
    found = rows(answer, "specs")
    if isinstance(found, Unknown):
        return found
    result = []
    for row in found:
        path, versions = text_of(row, "path"), row.get("versions")
        if path is None or not isinstance(versions, list):
            return Unknown(f"cdi: {path} could not be read: {text_of(row, 'error')}", answer.item)
        result.append(CdiSpec(path, _texts(versions), text_of(row, "kind"), _texts(row.get("devices"))))
    return tuple(result)
