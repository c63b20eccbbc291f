"""Where a result goes: standard output, or a file that is written whole or not at all."""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from provision.errors import Failure

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def writing(file: str | None) -> Iterator[TextIO]:
    """A stream for the result. Raises Failure where the file cannot be written; an old one then stays."""
    if file is None or file == "-":
        yield sys.stdout
        return
    path = Path(file)
    try:
        descriptor, fresh = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as e:
        raise Failure(f"{path}: cannot be written: {e.strerror}") from e
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            yield stream
        Path(fresh).replace(path)
    except OSError as e:
        raise Failure(f"{path}: cannot be written: {e.strerror}") from e
    finally:
        Path(fresh).unlink(missing_ok=True)
