"""The unit files of the host and whether each starts at boot, without asking systemd.

`systemctl list-unit-files` has PID 1 read and resolve every unit file, 0.2 s of the host's time at each
recording, in which it answers nobody else.
"""

import os
import re

from .reading import names, peek

MYPY = False
if MYPY:
    from typing import Any, Dict, Optional, Set

# Folders in order of precedence (systemd.unit(5)); what a unit is that lies there, and one that a link there
# starts.
_FOLDERS = (
    ("/etc/systemd/system", "", "enabled"),
    ("/run/systemd/system", "", "enabled-runtime"),
    ("/run/systemd/transient", "transient", "enabled-runtime"),
    ("/run/systemd/generator.early", "generated", "enabled-runtime"),
    ("/usr/local/lib/systemd/system", "", ""),
    ("/usr/lib/systemd/system", "", ""),
    ("/lib/systemd/system", "", ""),
    ("/run/systemd/generator", "generated", "enabled-runtime"),
    ("/run/systemd/generator.late", "generated", "enabled-runtime"),
)
_RUNS = "/run/systemd/system"
_KINDS = (".service", ".socket")
_INSTALL = re.compile(r"(?m)^\[Install\]\s*$(.*?)(?=^\[|\Z)", re.S)


def unit_files() -> "Dict[str, Any]":
    """What `systemctl list-unit-files *.service *.socket` prints, by name: the unit and its state."""
    if not os.path.isdir(_RUNS):
        return {"not_asked": "systemd does not run on this host"}
    enabled = _enabled()
    states: "Dict[str, str]" = {}
    for folder, kind, _ in _FOLDERS:
        for name in names(folder):
            if name.endswith(_KINDS) and name not in states:
                states[name] = _state(folder, name, kind, enabled)
    lines = ["%s %s -\n" % (name, states[name]) for name in sorted(states)]
    return {"argv": ["systemctl", "list-unit-files"], "rc": 0, "stdout": "".join(lines), "stderr": ""}


def _enabled() -> "Dict[str, str]":
    """Units that a link below /etc or /run starts, with the state that it gives them; templates by their
    instances.
    """
    found: "Dict[str, str]" = {}
    for folder, _, state in reversed(_FOLDERS):  # what /etc says comes last and wins
        if not state:
            continue
        for name in names(folder):
            path = os.path.join(folder, name)
            if name.endswith((".wants", ".requires", ".upholds")):
                for unit in names(path):
                    found[unit] = found[_template(unit)] = state
            elif os.path.islink(path):  # an alias of its own
                target = os.path.basename(os.readlink(path))
                if target not in (name, "null"):
                    found[target] = state
    return found


def _template(unit: str) -> str:
    return re.sub(r"@.*(\.\w+)$", r"@\1", unit)


def _state(folder: str, name: str, kind: str, enabled: "Dict[str, str]") -> str:
    path = os.path.join(folder, name)
    real = os.path.realpath(path)
    if real == "/dev/null" or (os.path.isfile(real) and os.path.getsize(real) == 0):
        return "masked-runtime" if folder == _RUNS else "masked"
    if os.path.basename(real) != name and os.path.islink(path):
        return "alias"
    if name in enabled:
        return enabled[name]
    if kind in ("transient", "generated"):
        return kind
    text: "Optional[str]" = peek(path)
    if text is None:
        return "bad"
    keys: "Set[str]" = set()
    for section in _INSTALL.findall(text):
        keys.update(re.findall(r"(?m)^\s*(\w+)\s*=\s*\S", section))
    if keys & {"WantedBy", "RequiredBy", "UpheldBy", "Alias"}:
        return "disabled"
    return "indirect" if "Also" in keys else "static"
