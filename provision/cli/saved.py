"""Saved recordings as input of a command."""

from __future__ import annotations

import sys
from pathlib import Path

from provision.errors import Usage
from provision.recording.model import Recording, RecordingError


def load(path: str) -> Recording:
    """The recording in a file, or on standard input for `-`. Raises Usage where there is none."""
    try:
        data = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
        return Recording.from_json(data.decode())
    except OSError as e:
        raise Usage(f"{path}: {e.strerror}") from e
    except UnicodeDecodeError as e:
        raise Usage(f"{path} is no recording: it is no UTF-8 text (byte {e.start})") from e
    except RecordingError as e:
        raise Usage(
            f"{path} is no recording: {e}", do="`gpu-provision record HOST --out FILE` writes one"
        ) from e
