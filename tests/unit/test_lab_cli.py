from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from provision import lab
from provision.cli.lab import lab as command
from provision.errors import Failure, Usage
from provision.lab.host import LabHost
from provision.lab.place import Place

if TYPE_CHECKING:
    from click.testing import Result


def call(*words: str) -> Result:
    return CliRunner().invoke(command, words)


def host(name: str) -> LabHost:
    return LabHost(Place(Path("/nowhere")), name, "trixie", "T4:1", 11, "10.201.77.11", "trixie-abc")


@pytest.mark.parametrize("words", [["down"], ["down", "gpu01", "--all"]])
def test_down_needs_one_name_or_all(words: list[str]) -> None:
    failed = call(*words).exception
    assert isinstance(failed, Usage)
    assert failed.exit_code == 2


def test_down_takes_what_was_named(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[str] = []
    monkeypatch.setattr(lab, "down", taken.append)
    monkeypatch.setattr(lab, "down_all", lambda: taken.append("all of them"))
    assert call("down", "gpu07").exit_code == call("down", "--all").exit_code == 0
    assert taken == ["gpu07", "all of them"]


def test_up_passes_what_was_asked_and_prints_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[object, ...]] = []

    def up(
        name: str | None, *, release: str | None, kind: str | None, gpus: str | None, say: object
    ) -> LabHost:
        asked.append((name, release, kind, gpus))
        return host(name or "gpu01")

    monkeypatch.setattr(lab, "up", up)
    assert call("up").stdout == "gpu01\t10.201.77.11\ttrixie\tT4:1\n"
    assert call("up", "n1", "--release", "trixie", "--gpus", "T4:1", "--kind", "container").exit_code == 0
    assert asked == [(None, None, None, None), ("n1", "trixie", "container", "T4:1")]


@pytest.mark.parametrize("words", [["--release", "sid"], ["--kind", "jail"]])
def test_up_refuses_what_there_is_not(words: list[str]) -> None:
    assert call("up", *words).exit_code == 2


def test_list_is_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lab, "hosts", lambda: [host("gpu01"), host("a-longer-name")])
    lines = call("list").stdout.splitlines()
    assert lines[0].split()[:5] == ["NAME", "STATE", "KIND", "RELEASE", "ADDRESS"]
    assert lines[2].split() == [
        "a-longer-name",
        "half-made",
        "container",
        "trixie",
        "10.201.77.11",
        "T4:1",
    ]
    assert len({line.index("10.") for line in lines[1:]}) == 1


def test_an_empty_lab_prints_no_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lab, "hosts", list)
    assert call("list").stdout == ""
    assert "lab up" in call("list").stderr


def test_ssh_to_nobody_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(lab, "find", lambda _: None)
    failed = call("ssh", "nobody").exception
    assert isinstance(failed, Failure)
    assert "no lab host of this name" in str(failed)


@pytest.mark.parametrize("words", [["up"], ["list"], ["ssh", "gpu01"], ["down", "--all"]])
def test_without_root_every_command_says_so(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    failed = call(*words).exception
    assert isinstance(failed, Usage)
    assert "the lab needs root" in str(failed)
