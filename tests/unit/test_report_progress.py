"""Live progress on standard error: plain lines without a terminal, a table with one."""

from __future__ import annotations

import io
import re
from typing import Any

import pytest

from provision.converge.events import Event, Kind, TaskStatus
from provision.report.progress import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def event(kind: Kind, **fields: Any) -> Event:
    return Event(kind, 1.0, **({"host": "gpu01", "role": "nccl", "task": "Write"} | fields))


def lines(stream: io.StringIO) -> list[str]:
    return [re.sub(r"^\[ *\d+\.\d s\] ", "", line) for line in stream.getvalue().splitlines()]


def test_each_step_is_one_line_whatever_its_tasks() -> None:
    out = io.StringIO()
    with progress(["gpu01"], out, {"gpu01": ("nccl",)}) as shown:
        shown.step("gpu01", "recording")
        shown.on_event(event(Kind.TASK))
        shown.on_event(event(Kind.TASK, task="Read back"))
        shown.end("gpu01", "done")
    assert lines(out) == ["gpu01: recording", "gpu01: nccl", "gpu01: done"]
    assert all(re.match(r"\[ *\d+\.\d s\] ", line) for line in out.getvalue().splitlines())


def test_roles_that_are_not_planned_do_not_show() -> None:
    out = io.StringIO()
    with progress(["gpu01"], out, {"gpu01": ("nccl",)}) as shown:
        shown.on_event(event(Kind.TASK, role="gpu_settings"))
        shown.on_event(event(Kind.RESULT, role="gpu_settings", status=TaskStatus.SKIPPED))
    assert lines(out) == []


def test_a_failure_shows_its_message_and_an_ignored_one_does_not() -> None:
    out = io.StringIO()
    with progress(["gpu01"], out) as shown:
        shown.on_event(event(Kind.RESULT, status=TaskStatus.FAILED, message="no", ignored=True))
        shown.on_event(event(Kind.RESULT, status=TaskStatus.FAILED, message="no room\nleft"))
    assert lines(out) == ["gpu01: failed: nccl: Write: no room", "left"]


def test_what_a_stop_waits_for_is_said() -> None:
    out = io.StringIO()
    with progress(["gpu01"], out) as shown:
        shown.on_event(Event(Kind.STOPPING, 1.0, message="stopping soon"))
    assert lines(out) == ["stopping soon"]


@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
def test_escape_sequences_of_a_host_do_not_get_through(stream: type[io.StringIO]) -> None:
    out = stream()
    with progress(["gpu01"], out) as shown:
        shown.on_event(event(Kind.RESULT, status=TaskStatus.FAILED, message="\x1b]0;owned\x07x"))
    assert "\x1b]0;owned" not in out.getvalue()
    assert "\x07" not in out.getvalue()


def test_a_terminal_shows_hosts_steps_and_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    out = Terminal()
    with progress(["gpu01", "gpu02"], out, {"gpu01": ("nccl",)}) as shown:
        shown.on_event(event(Kind.RETRY, attempt=1, of=3))
        shown.end("gpu02", "unreached", "no route to host")
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", out.getvalue())
    assert re.search(r"gpu01 +nccl +[\d.]+ s +Write \(try 1 of 3\)", plain)
    assert "gpu02: unreached: no route to host" in plain


def test_many_hosts_do_not_fill_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    out = Terminal()
    with progress([f"gpu{n:03}" for n in range(100)], out) as shown:
        shown.step("gpu000", "recording")
    assert "and 76 more" in out.getvalue()


def test_no_colour_is_honoured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    out = Terminal()
    with progress(["gpu01"], out) as shown:
        shown.end("gpu01", "failed", "why")
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]m", out.getvalue())
