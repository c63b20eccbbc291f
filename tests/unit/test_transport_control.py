"""The folders of control sockets: those of runs that are gone are cleared away, all others are left alone."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from provision.transport import control

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(control, "PLACE", tmp_path)
    return tmp_path


def stale(place: Path, name: str = "gp-run-gone") -> Path:
    folder = place / name
    folder.mkdir(mode=0o700)
    (folder / "socket").touch()
    os.utime(folder, (1, 1))
    return folder


def test_what_a_killed_run_left_goes(place: Path) -> None:
    gone = stale(place)
    with control.ControlFolder() as folder:
        assert not gone.exists()
        assert folder.path.stat().st_mode & 0o777 == 0o700
    assert not list(place.iterdir())


def test_a_run_that_lives_keeps_its_folder(place: Path) -> None:
    with control.ControlFolder() as first:
        os.utime(first.path, (1, 1))
        with control.ControlFolder():
            assert first.path.is_dir()


@pytest.mark.parametrize("kind", ["young", "file", "link", "another name"])
def test_what_is_left_alone(place: Path, kind: str) -> None:
    there = place / "gp-run-x"
    if kind == "young":
        there.mkdir()
    elif kind == "file":
        there.touch()
        os.utime(there, (1, 1))
    elif kind == "link":
        there.symlink_to(stale(place, "elsewhere"))
    else:
        there = stale(place, "gp-other")
    with control.ControlFolder():
        assert there.exists()
        assert kind != "link" or (place / "elsewhere" / "socket").exists()
