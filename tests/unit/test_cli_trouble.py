"""Wrong files and a machine in trouble: one message and the contract's exit code, never a traceback."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

START = '{"schema": "gpu-provision/recording/1", "host": "h", "items": '
EMPTY = START + "{}}"
AUDIT = (sys.executable, "-m", "provision", "audit", "--recording")


def run(*words: str | Path, **how: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "provision", *words], **{"capture_output": True, "text": True, **how}
    )


def assert_one_message(done: subprocess.CompletedProcess[str], code: int, says: str) -> None:
    assert done.returncode == code, done.stderr
    assert says in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "text",
    ["[" * 100_000, START + '{"a":' * 100_000, START + "{}" + ', "seconds": ' + "9" * 5000 + "}"],
    ids=["deep", "deep items", "long number"],
)
def test_json_that_python_cannot_read_is_no_recording(tmp_path: Path, text: str) -> None:
    file = tmp_path / "r.json"
    file.write_text(text)
    assert_one_message(run("audit", "--recording", file), 2, "no recording")


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("date.yml", "gpu_settings_clocks: 2026-02-31\n", "not YAML"),
        (
            "twice.yml",
            "a: {b: 1}\nc:\n  d: 1\n  d: 2\n",
            "line 4, column 3: d is given twice; first in line 3",
        ),
        ("word.yml", "required_controls: 5\n", "must be a list of controls"),
        ("control.yml", "required_controls: [gpu.heath]\n", "did you mean gpu.health?"),
    ],
)
def test_wrong_profiles(tmp_path: Path, name: str, text: str, says: str) -> None:
    (tmp_path / name).write_text(text)
    (tmp_path / "r.json").write_text(EMPTY)
    done = run("audit", "--recording", tmp_path / "r.json", "--profile", tmp_path / name)
    assert_one_message(done, 2, says)


def test_a_value_from_a_binary_file(tmp_path: Path) -> None:
    (tmp_path / "v").write_bytes(b"\xff\xfe")
    assert_one_message(run("audit", "h", "--set", f"nccl_interface=@{tmp_path / 'v'}"), 2, "no UTF-8 text")


def test_half_a_surrogate_pair_in_a_recording_does_not_break_the_report(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text(EMPTY.replace('"h"', '"\\ud800"'))
    done = run("audit", "--recording", tmp_path / "r.json", "--format", "json")
    assert done.returncode == 3, done.stderr
    assert json.loads(done.stdout)["hosts"][0]["host"] == "\ufffd"


def test_a_result_that_the_disk_does_not_take(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text(EMPTY)
    with Path("/dev/full").open("w") as full:
        done = run(
            "audit",
            "--recording",
            tmp_path / "r.json",
            capture_output=False,
            stdout=full,
            stderr=subprocess.PIPE,
        )
    assert_one_message(done, 1, "No space left on device")


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_do_not_change_the_exit_code(tmp_path: Path, closed: str) -> None:
    (tmp_path / "r.json").write_text(EMPTY)
    words = (*AUDIT, str(tmp_path / "r.json"))
    done = subprocess.run(["sh", "-c", f'"$@" {closed}', "sh", *words], capture_output=True, text=True)
    assert_one_message(done, 3, "")


@pytest.mark.parametrize("form", ["text", "json", "junit"])
def test_a_reader_that_goes_away_does_not_change_the_exit_code(tmp_path: Path, form: str) -> None:
    (tmp_path / "r.json").write_text(EMPTY)
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = run(
            "audit",
            "--recording",
            tmp_path / "r.json",
            "--format",
            form,
            capture_output=False,
            stdout=writer,
            stderr=subprocess.PIPE,
        )
    finally:
        os.close(writer)
    assert_one_message(done, 3, "")


@pytest.mark.parametrize(
    "words",
    ["resolve --gpu A100 --os debian12", "resolve --gpu A100 --os debian12 --json", "catalog gpus", "--help"],
)
def test_any_other_command_whose_reader_goes_away_ends_as_programs_do(words: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = run(*words.split(), capture_output=False, stdout=writer, stderr=subprocess.PIPE)
    finally:
        os.close(writer)
    assert_one_message(done, 128 + signal.SIGPIPE, "")
    assert not done.stderr


def test_a_key_given_twice_in_a_value(tmp_path: Path) -> None:
    (tmp_path / "v").write_text("{graphics: 1,\n graphics: 2}")
    done = run("audit", "h", "--set", f"gpu_settings_clocks=@{tmp_path / 'v'}")
    assert_one_message(done, 2, "line 2, column 2: graphics is given twice")


@pytest.mark.parametrize("place", ["hosts.yml", "group_vars/all.yml", "host_vars/h"])
def test_a_key_given_twice_in_an_inventory(tmp_path: Path, place: str) -> None:
    (tmp_path / "group_vars").mkdir()
    (tmp_path / "host_vars").mkdir()
    (tmp_path / "hosts.yml").write_text("all:\n  hosts:\n    h:\n")
    with (tmp_path / place).open("a") as file:
        file.write("      x: 1\n      x: 2\n" if place == "hosts.yml" else "x: 1\nx: 2\n")
    done = run("audit", "h", "-i", tmp_path)
    assert_one_message(done, 2, f"{place}: line {5 if place == 'hosts.yml' else 2}, column")


def test_a_device_or_pipe_is_written_into_and_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text(EMPTY)
    os.mkfifo(tmp_path / "pipe")
    with subprocess.Popen(
        [*AUDIT, tmp_path / "r.json", "--out", tmp_path / "pipe"], stderr=subprocess.PIPE
    ) as command:
        text = (tmp_path / "pipe").read_text()
        assert command.wait() == 3
    assert "unknown" in text
    assert (tmp_path / "pipe").is_fifo()


def test_a_width_of_nothing_hides_nothing(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text(EMPTY)
    done = run("audit", "--recording", tmp_path / "r.json", env={**os.environ, "COLUMNS": "0"})
    assert "unknown" in done.stdout


def test_a_home_that_takes_no_run_directory(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    # The port refuses at once; the run directory comes first.
    done = run(
        "bootstrap", "127.0.0.1:1", "--yes", env={**os.environ, "XDG_STATE_HOME": str(tmp_path / "file")}
    )
    assert_one_message(done, 1, f"{tmp_path / 'file'}")


def test_a_host_that_was_in_no_run_is_not_resumed(tmp_path: Path) -> None:
    env = {**os.environ, "XDG_STATE_HOME": str(tmp_path)}
    done = run("bootstrap", "root@192.0.2.1", "--resume", "--yes", env=env)
    assert_one_message(done, 2, "no earlier bootstrap had root@192.0.2.1")
    assert not list(tmp_path.rglob("state.json"))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{}", "it names no schema"),
        ("[]", "a recording is a JSON object"),
        ('{"schema": "other/1"}', "its schema is 'other/1'"),
        (START, "not JSON: line 1"),
    ],
)
def test_what_is_no_recording_is_told_by_what_is_wrong(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "r.json").write_text(text)
    done = run("audit", "--recording", tmp_path / "r.json")
    assert_one_message(done, 2, says)
    assert "JSON that can be read" not in done.stderr


def test_a_recording_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text("\ufeff" + EMPTY)
    done = run("audit", "--recording", tmp_path / "r.json")
    assert "no recording" not in done.stderr
    assert done.returncode != 2


@pytest.mark.parametrize(("out", "says"), [(".", "it is a folder"), ("no/such", "there is no folder")])
def test_a_report_that_cannot_be_written_is_a_wrong_call(tmp_path: Path, out: str, says: str) -> None:
    (tmp_path / "r.json").write_text(EMPTY)
    done = run("audit", "--recording", tmp_path / "r.json", "--out", tmp_path / out)
    assert_one_message(done, 2, says)
