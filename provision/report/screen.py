"""The console on which commands print; slow to import, so it is done where something is printed."""

from __future__ import annotations

from rich.console import Console


class Screen(Console):
    """A console whose reader may go away (`| head`)."""

    def on_broken_pipe(self) -> None:
        """Left to the command, which knows its exit code; rich would end the process with 1."""
        raise BrokenPipeError
