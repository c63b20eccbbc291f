"""Saved recordings as input of a command."""

from __future__ import annotations

from pathlib import Path

from provision.errors import Usage
from provision.recording.model import Recording, RecordingError


def load(path: str) -> Recording:
    """The recording in a file. Raises Usage where the file cannot be read or holds none."""
    try:
        return Recording.from_json(Path(path).read_text(encoding="utf-8"))
    except OSError as e:
        raise Usage(f"{path}: {e.strerror}") from e
    except UnicodeDecodeError as e:
        raise Usage(f"{path}: not a recording: it is no UTF-8 text (byte {e.start})") from e
    except RecordingError as e:
        raise Usage(
            f"{path}: not a recording: {e}", do="`gpu-provision record HOST --out FILE` writes one"
        ) from e
