"""The machine that we run on, with the same interface as an SSH session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from ..errors import Unreached
from . import child

if TYPE_CHECKING:
    from collections.abc import Sequence


class Local:
    """Runs commands here, as the user that we are."""

    def __init__(self, sudo_password: str | None = None) -> None:
        self.sudo_password = sudo_password

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def open(self) -> None:
        """Nothing to open."""

    def close(self) -> None:
        """Nothing to close."""

    def argv(self, command: Sequence[str]) -> list[str]:
        """The command line that runs `command` here."""
        return list(command)

    def run(self, argv: Sequence[str], stdin: bytes = b"", timeout: float = 60.0) -> child.Completed:
        """Raises Unreached where the command cannot be started or does not end within `timeout` seconds."""
        try:
            return child.run(list(argv), stdin, timeout)
        except child.TimedOut as e:
            raise Unreached(f"{argv[0]} did not end within {e.seconds:g} s", host="local") from e
        except OSError as e:
            raise Unreached(f"{argv[0]} could not be started: {e.strerror}", host="local") from e
