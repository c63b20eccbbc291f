"""systemd's units: asked of systemd where there is a unit, and known absent where there is none."""

import os

from .asking import ask
from .reading import peek

MYPY = False
if MYPY:
    from typing import Any, Dict, List

# Where systemd looks for units (systemd.unit(5)).
_FOLDERS = (
    "/etc/systemd/system",
    "/run/systemd/system",
    "/run/systemd/transient",
    "/run/systemd/generator",
    "/run/systemd/generator.early",
    "/run/systemd/generator.late",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
)
_ABSENT = "Id=%s\nNames=%s\nLoadState=not-found\nActiveState=inactive\nSubState=dead\nUnitFileState=\n"


def units(wanted: "List[str]", properties: str) -> "Dict[str, Any]":
    """`systemctl show` of the units that there are; of the others what it would say.

    Asked about each, systemd searches all its folders for it: that would be most of a recording's cost.
    """
    if not os.path.isdir("/run/systemd/system"):
        return {"not_asked": "systemd does not run on this host"}
    there = [unit for unit in wanted if _exists(unit)]
    answer = ask(["systemctl", "show", "--no-pager", "-p", properties, *there], 8.0, 1024 * 1024)
    if answer.get("rc") == 0:
        absent = [_ABSENT % (unit, unit) for unit in wanted if unit not in there]
        answer["stdout"] = "\n".join([answer["stdout"]] * bool(there) + absent)
    return answer


def _exists(unit: str) -> bool:
    return any(os.path.lexists(os.path.join(folder, unit)) for folder in _FOLDERS) or is_running(unit)


def is_running(unit: str) -> bool:
    """Whether the unit's control group holds a process; works without asking systemd."""
    hierarchies = ("", "unified/", "systemd/")
    return any(peek("/sys/fs/cgroup/%ssystem.slice/%s/cgroup.procs" % (each, unit)) for each in hierarchies)
