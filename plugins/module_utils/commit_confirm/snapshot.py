"""The old state: content, mode and owner of each named path, or that it was not there; and units' states.

`cp -a` copies, because it keeps modes, owners, times, ACLs and security contexts, and because the revert
script restores with the same tool. A second copy lies beside each file, on its own file system: putting
that one in place is a rename, which works on a full disk.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from .state import write_whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class SnapshotError(Exception):
    """The old state could not be kept, so nothing may change; the message says why."""


def real(path: str) -> str:
    """Where a path really lies; a file behind a link is changed there. Raises SnapshotError."""
    if not path.startswith("/") or any(c in path for c in "\t\n"):
        raise SnapshotError(f"{path!r} is no absolute path without tabs and line ends")
    found = os.path.realpath(path)
    if Path(found).is_dir():
        raise SnapshotError(f"{path} is a directory; name the files in it")
    return found


def beside(path: str, transaction: str) -> Path:
    """The copy that waits in the file's own directory; no Include or drop-in pattern matches its name."""
    target = Path(path)
    return target.parent / f".{target.name}.gpu-provision-{transaction}"


def take(directory: Path, transaction: str, paths: Iterable[str]) -> None:
    """Keep every path in `directory`. The manifest is there first, so that a killed run can be swept up.

    Raises SnapshotError or OSError; what was copied until then is the caller's to remove.
    """
    kept: list[str] = []
    gone: list[str] = []
    parents: set[Path] = set()
    for path in sorted({real(p) for p in paths}):
        if os.path.lexists(path):
            kept.append(path)
        else:
            gone.append(path)
            parents.update(parent for parent in Path(path).parents if not parent.is_dir())
    lines = [f"file\t{number}\t{path}" for number, path in enumerate(kept)]
    lines += [f"absent\t-\t{path}" for path in gone]
    # Directories that were not there go last, deepest first: by then what was written in them is gone.
    lines += [f"nodir\t-\t{parent}" for parent in sorted(parents, key=lambda p: -len(p.parts))]
    write_whole(directory / "manifest", "".join(f"{x}\n" for x in lines).encode(), 0o600)
    copies = directory / "files"
    copies.mkdir(mode=0o700)
    for number, path in enumerate(kept):
        _copy(path, copies / str(number))
        _copy(path, beside(path, transaction))


def forget(directory: Path, transaction: str) -> None:
    """Remove the copies beside the files that the manifest in `directory` names."""
    with contextlib.suppress(OSError):
        for line in (directory / "manifest").read_text().splitlines():
            kind, _, path = line.split("\t", 2)
            if kind == "file":
                beside(path, transaction).unlink(missing_ok=True)


def take_units(directory: Path, units: Sequence[str]) -> None:
    """Keep whether each unit is enabled and active, in systemctl's own words."""
    lines = [f"{unit}\t{_ask('is-enabled', unit)}\t{_ask('is-active', unit)}\n" for unit in units]
    write_whole(directory / "units", "".join(lines).encode(), 0o600)


def _copy(source: str, target: Path) -> None:
    for command in (["cp", "-aPT", "--", source, str(target)], ["sync", "--", str(target)]):
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode != 0:
            raise SnapshotError(f"no copy of {source} could be kept: {done.stderr.strip()}")


def _ask(question: str, unit: str) -> str:
    command = ["systemctl", question, unit]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    words = done.stdout.split()
    return words[0] if words else "unknown"
