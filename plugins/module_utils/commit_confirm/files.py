"""Files as they are and as they should be; each is replaced whole by one rename, or not at all."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from pathlib import Path
from typing import Any

from .snapshot import SnapshotError, real
from .state import fsync_directory, write_whole


def differences(files: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The files that are not as they should be: text, mode and owner before and after (None: not there).

    Each file has a path and either `text` (None: must not be there) or `first_line`, which leaves the
    rest of the file byte for byte. Raises SnapshotError for a path or an owner that cannot be.
    """
    return [found for file in files if (found := _difference(file)) is not None]


def _difference(file: dict[str, Any]) -> dict[str, Any] | None:
    path = Path(real(file["path"]))
    there = path.stat() if path.exists() else None
    before = path.read_bytes().decode("utf-8", "surrogateescape") if there else None
    mode_before = f"{there.st_mode & 0o7777:04o}" if there else None
    after, mode, uid = file["text"], None, None
    if file.get("first_line") is not None:
        line = file["first_line"] + "\n"
        after = before if before is not None and before.startswith(line) else line + (before or "")
    if after is not None:
        mode = f"{int(file['mode'], 8):04o}" if file.get("mode") else mode_before or "0644"
        owner = file.get("owner")
        uid = _uid(owner) if owner else there.st_uid if there else 0
    if (before, mode_before, there.st_uid if there else None) == (after, mode, uid):
        return None
    return {
        "path": str(path), "before": before, "after": after, "mode_before": mode_before, "mode": mode,
        "uid": uid, "gid": there.st_gid if there else 0,
    }  # fmt: skip


def put(difference: dict[str, Any]) -> None:
    """Make one file as it should be. Raises OSError; the file is then as it was."""
    path = Path(difference["path"])
    if difference["after"] is None:
        path.unlink(missing_ok=True)
        return
    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    fresh = path.parent / f".{path.name}.gpu-provision-new"
    fresh.unlink(missing_ok=True)
    text = difference["after"].encode("utf-8", "surrogateescape")
    try:
        write_whole(fresh, text, int(difference["mode"], 8))
        os.chown(fresh, difference["uid"], difference["gid"])
        fresh.rename(path)
    except OSError:
        fresh.unlink(missing_ok=True)
        raise
    fsync_directory(path.parent)
    if shutil.which("restorecon"):
        subprocess.run(["restorecon", str(path)], stdin=subprocess.DEVNULL, capture_output=True)


def shown(difference: dict[str, Any]) -> dict[str, Any]:
    """A difference for a report: bytes that are no UTF-8 are replaced."""
    return {k: _readable(v) if isinstance(v, str) else v for k, v in difference.items()}


def _readable(text: str) -> str:
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _uid(owner: str) -> int:
    try:
        return pwd.getpwnam(owner).pw_uid
    except KeyError:
        raise SnapshotError(f"there is no account {owner} on this host") from None
