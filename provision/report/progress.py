"""Live progress for people, on standard error: each host, its step, how long, and what failed.

On a terminal the hosts stand in a table that is redrawn; elsewhere each step is a plain line.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TextIO

from ..converge.events import Event, Kind, TaskStatus
from .text.lines import duration, printable

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType

    from rich.console import Console, RenderableType

FEW_HOSTS = 24
REFRESH_PER_SECOND = 4
REMIND_SECONDS = 60.0


@dataclass
class _Row:
    step: str = ""
    detail: str = ""
    since: float = field(default_factory=time.monotonic)
    state: str = "waiting"
    changed: int = 0


class Progress(Protocol):
    """What the flows tell about a run while it goes on."""

    def __enter__(self) -> Progress: ...

    def __exit__(
        self, kind: type[BaseException] | None, e: BaseException | None, at: TracebackType | None
    ) -> None: ...

    def step(self, host: str, step: str, detail: str = "") -> None:
        """A host begins a step, such as `recording` or a role."""
        ...

    def end(self, host: str, state: str, message: str = "") -> None:
        """A host came to an end: done, failed, unreachable or another word; with the reason."""
        ...

    def say(self, message: str) -> None:
        """Something that is about no one host."""
        ...

    def on_event(self, event: Event) -> None:
        """Take an event of a converge."""
        ...


def progress(
    hosts: Iterable[str], stream: TextIO, roles: dict[str, tuple[str, ...]] | None = None
) -> Progress:
    """The progress that fits `stream`. `roles` are each host's planned ones; steps of others do not show."""
    rows = {host: _Row() for host in hosts}
    return _Live(rows, stream, roles or {}) if stream.isatty() else _Lines(rows, stream, roles or {})


class _Base(ABC):
    def __init__(self, rows: dict[str, _Row], stream: TextIO, roles: dict[str, tuple[str, ...]]) -> None:
        self._rows, self._stream, self._roles = rows, stream, roles
        self._began = time.monotonic()
        # Hosts are recorded and verified side by side; their steps come from several threads.
        self._lock = threading.RLock()

    def on_event(self, event: Event) -> None:
        if event.kind in (Kind.STOPPING, Kind.ERROR):
            self.say(event.message)
            return
        if event.host is None or (
            event.role and event.role not in self._roles.get(event.host, (event.role,))
        ):
            return
        if event.kind is Kind.TASK:
            self.step(event.host, event.role or "play", event.task or "")
        elif event.kind is Kind.RETRY:
            self.step(event.host, event.role or "play", f"{event.task} (try {event.attempt} of {event.of})")
        elif event.kind is Kind.RESULT:
            self._result(event.host, event)

    def _result(self, host: str, event: Event) -> None:
        row = self._row(host)
        if event.status is TaskStatus.CHANGED:
            row.changed += 1
        if event.status in (TaskStatus.FAILED, TaskStatus.UNREACHABLE) and not event.ignored:
            where = f"{event.role}: {event.task}" if event.role else str(event.task)
            self.end(host, str(event.status), f"{where}: {event.message}")

    def _row(self, host: str) -> _Row:
        return self._rows.setdefault(host, _Row())

    def _enter(self, host: str, step: str, detail: str) -> bool:
        """Note the step; True where it is another one than before."""
        row = self._row(host)
        new = row.step != step
        if new:
            row.since = time.monotonic()
        row.step, row.detail, row.state = step, detail, "running"
        return new

    @abstractmethod
    def step(self, host: str, step: str, detail: str = "") -> None: ...

    @abstractmethod
    def end(self, host: str, state: str, message: str = "") -> None: ...

    @abstractmethod
    def say(self, message: str) -> None: ...


class _Lines(_Base):
    """A line for each step and each end, with the seconds since the start, and one a minute meanwhile."""

    def __enter__(self) -> _Lines:
        self._over = threading.Event()
        self._reminder = threading.Thread(target=self._remind, daemon=True)
        self._reminder.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, e: BaseException | None, at: TracebackType | None
    ) -> None:
        self._over.set()
        self._reminder.join()
        self._stream.flush()

    def _remind(self) -> None:
        while not self._over.wait(REMIND_SECONDS):
            with self._lock:
                for host, row in self._rows.items():
                    if row.state == "running":
                        self._print(f"{host}: {row.step}: still at it: {row.detail or row.step}")

    def step(self, host: str, step: str, detail: str = "") -> None:
        with self._lock:
            if self._enter(host, step, detail):
                self._print(f"{host}: {step}")

    def end(self, host: str, state: str, message: str = "") -> None:
        with self._lock:
            self._row(host).state = state
            self._print(f"{host}: {state}" + (f": {message}" if message else ""))

    def say(self, message: str) -> None:
        with self._lock:
            self._print(message)

    def _print(self, text: str) -> None:
        for line in text.splitlines():
            print(
                f"[{time.monotonic() - self._began:7.1f} s] {printable(line)}", file=self._stream, flush=True
            )


class _Live(_Base):
    """A table that is redrawn in place; failures are printed above it and stay."""

    def __init__(self, rows: dict[str, _Row], stream: TextIO, roles: dict[str, tuple[str, ...]]) -> None:
        from rich.console import Console
        from rich.live import Live

        super().__init__(rows, stream, roles)
        self._console: Console = Console(file=stream, highlight=False, markup=False, emoji=False)
        self._live = Live(
            get_renderable=self._table,
            console=self._console,
            refresh_per_second=REFRESH_PER_SECOND,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def __enter__(self) -> _Live:
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, e: BaseException | None, at: TracebackType | None
    ) -> None:
        self._live.__exit__(kind, e, at)

    def step(self, host: str, step: str, detail: str = "") -> None:
        with self._lock:
            self._enter(host, step, detail)

    def end(self, host: str, state: str, message: str = "") -> None:
        with self._lock:
            row = self._row(host)
            row.state, row.detail = state, message.splitlines()[0] if message else ""
        if message:
            style = "" if state == "done" else "red"
            self._print(f"{host}: {state}: {message}", style)

    def say(self, message: str) -> None:
        self._print(message, "yellow")

    def _print(self, text: str, style: str) -> None:
        for line in text.splitlines():
            self._console.print(printable(line), style=style)

    def _table(self) -> RenderableType:
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
        now = time.monotonic()
        with self._lock:
            rows = sorted(self._rows.items(), key=lambda r: r[1].state == "done")
            for host, row in rows[:FEW_HOSTS]:
                running = row.state == "running"
                style = {"running": "cyan", "done": "green", "waiting": "dim"}.get(row.state, "red")
                table.add_row(
                    Text(host, style="bold", no_wrap=True),
                    Text(row.step if running else row.state, style=style, no_wrap=True),
                    Text(
                        duration(now - row.since) if running else "",
                        style="dim",
                        justify="right",
                        no_wrap=True,
                    ),
                    Text(printable(row.detail), no_wrap=True, overflow="ellipsis"),
                )
            rest = len(rows) - FEW_HOSTS
        if rest > 0:
            table.add_row(Text(f"and {rest} more", style="dim"))
        table.add_row(Text(duration(now - self._began), style="dim"))
        return table
