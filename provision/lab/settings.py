"""Kernel settings of this machine that a lab changes, and putting them back when the last lab has gone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TypedDict

from .place import RUN, Place
from .shell import lock

# Each booted systemd takes about 16 inotify instances of root, and Linux allows 128 in all; hosts reach the
# archive only where the machine forwards.
WANTED = {
    "fs.inotify.max_user_instances": 8192,
    "fs.inotify.max_user_watches": 524288,
    "net.ipv4.ip_forward": 1,
}


class Notes(TypedDict):
    """Settings as they were found, and the labs that need them raised."""

    found: dict[str, int]
    labs: list[str]


def raise_(place: Place) -> None:
    """Raises the settings; the values found are kept, and this lab is noted as needing the raised ones."""
    with lock(RUN / "lock"):
        notes = _read()
        for name, wanted in WANTED.items():
            found = int(_file(name).read_text())
            if found < wanted:
                notes["found"].setdefault(name, found)
                _write(notes)  # before the change: it can be put back even if this process ends here
                _file(name).write_text(str(wanted))
        if place.bridge not in notes["labs"]:
            notes["labs"].append(place.bridge)
            _write(notes)


def put_back(place: Place) -> None:
    """Notes that this lab is gone; the last one puts back what was found."""
    with lock(RUN / "lock"):
        notes = _read()
        notes["labs"] = [lab for lab in notes["labs"] if lab != place.bridge]
        if notes["labs"]:
            _write(notes)
            return
        for name, found in notes["found"].items():
            if int(_file(name).read_text()) == WANTED[name]:  # else somebody else has set it since
                _file(name).write_text(str(found))
        _notes().unlink(missing_ok=True)


def _file(name: str) -> Path:
    return Path("/proc/sys") / name.replace(".", "/")


def _notes() -> Path:
    return RUN / "settings.json"


def _read() -> Notes:
    if not _notes().exists():
        return {"found": {}, "labs": []}
    notes: Notes = json.loads(_notes().read_text())
    return notes


def _write(notes: Notes) -> None:
    half = _notes().with_suffix(".half")
    half.write_text(json.dumps(notes))
    half.replace(_notes())
