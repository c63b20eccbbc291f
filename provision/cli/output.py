"""Where a result goes: standard output, or a file that is written whole or not at all."""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from provision.errors import Failure, Usage

if TYPE_CHECKING:
    from collections.abc import Iterator


def check(file: str | None) -> None:
    """Raise Usage where the file of a result could not be written, before any host is asked for it."""
    path = Path(file or "-")
    if file in (None, "-") or (path.exists() and not path.is_file() and not path.is_dir()):
        return
    if path.is_dir():
        raise Usage(f"{path}: cannot be written: it is a folder", do="name a file")
    if not path.parent.is_dir():
        raise Usage(f"{path}: cannot be written: there is no folder {path.parent}")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise Usage(f"{path}: cannot be written: no right to write in {path.parent}")


@contextmanager
def writing(file: str | None) -> Iterator[TextIO]:
    """A stream for the result. Raises Failure where the file cannot be written; an old one then stays."""
    if file is None or file == "-":
        yield from _standard_output()
        return
    path = Path(file)
    if path.exists() and not path.is_file():
        yield from _in_place(path)
        return
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


def _standard_output() -> Iterator[TextIO]:
    """A reader that went away (`| head`) has seen enough: what the command found is its exit code still."""
    try:
        yield sys.stdout
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _in_place(path: Path) -> Iterator[TextIO]:
    """A device or a pipe, which must not be replaced by a file."""
    try:
        with path.open("w", encoding="utf-8") as stream:
            yield stream
    except OSError as e:
        raise Failure(f"{path}: cannot be written: {e.strerror}") from e
