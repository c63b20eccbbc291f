"""A progress for tests of runs, which prints nothing."""

from __future__ import annotations


class Silent:
    """A progress that only keeps what it was told of no one host."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def __enter__(self) -> Silent:
        return self

    def __exit__(self, *_: object) -> None: ...
    def step(self, *_: object) -> None: ...
    def end(self, *_: object) -> None: ...
    def on_event(self, *_: object) -> None: ...
    def say(self, message: str) -> None:
        self.said.append(message)
