"""Saved recordings as input of a command."""

from __future__ import annotations

import sys
from pathlib import Path

from provision.errors import Usage
from provision.recording.model import Recording, RecordingError

# The collector ends far below that; a device or a wrong file must not eat the memory.
LARGEST = 256 * 1024 * 1024


def load(path: str) -> Recording:
    """The recording in a file, or on standard input for `-`. Raises Usage where there is none."""
    try:
        if path == "-":
            data = sys.stdin.buffer.read(LARGEST + 1)
        else:
            with Path(path).open("rb") as file:
                data = file.read(LARGEST + 1)
        if len(data) > LARGEST:
            raise Usage(f"{path} is no recording: it is longer than {LARGEST >> 20} MiB")
        return Recording.from_json(data.decode())
    except OSError as e:
        raise Usage(f"{path}: {e.strerror}") from e
    except UnicodeDecodeError as e:
        raise Usage(f"{path} is no recording: it is no UTF-8 text (byte {e.start})") from e
    except RecordingError as e:
        raise Usage(
            f"{path} is no recording: {e}", do="`gpu-provision record HOST --out FILE` writes one"
        ) from e
