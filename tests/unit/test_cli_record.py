"""`gpu-provision record`, on this machine and on an address where nobody listens."""

from __future__ import annotations

import json
import socket
import stat
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from provision.recording.model import Recording

if TYPE_CHECKING:
    from pathlib import Path


def record(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "provision", "record", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, timeout=120
    )


@pytest.fixture(scope="module")
def deaf() -> str:
    """An address of this machine at which connections are refused."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{taken.getsockname()[1]}"


def test_one_host_is_one_document_on_standard_output() -> None:
    done = record("local", "--redact")
    assert done.returncode == 0, done.stderr
    recording = Recording.from_json(done.stdout)
    assert recording.answer("uname").rc == 0
    assert recording.host == "host1"
    assert done.stderr == ""


def test_a_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    out = tmp_path / "local.json"
    done = record("local", "--out", str(out))
    assert (done.returncode, done.stdout) == (0, "")
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    assert Recording.from_json(out.read_text()).host == "local"


def test_several_hosts_go_into_a_folder_and_those_reached_are_kept(tmp_path: Path, deaf: str) -> None:
    done = record("local", deaf, "--out", str(tmp_path / "new"))
    assert done.returncode == 3
    assert "nothing listens there" in done.stderr
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["local.json"]
    assert json.loads((tmp_path / "new" / "local.json").read_text())["schema"] == "gpu-provision/recording/1"


def test_what_cannot_be_done_is_said_before_anything_is_asked(tmp_path: Path, deaf: str) -> None:
    several = record("local", deaf)
    assert (several.returncode, several.stdout) == (2, "")
    assert "--out DIR" in several.stderr
    nowhere = record("local", "--out", str(tmp_path / "no" / "such" / "file"))
    assert nowhere.returncode == 2
    assert "there is no folder" in nowhere.stderr


def test_an_unreachable_host_is_one_clear_line(deaf: str) -> None:
    done = record(deaf)
    assert (done.returncode, done.stdout) == (3, "")
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith(f"gpu-provision: {deaf}: 127.0.0.1 port ")
