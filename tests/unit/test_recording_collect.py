"""The collector's engine: limits, bounds, hanging children, and answers for what was not there."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
from collector import collected, shell

OLD_PYTHONS = sorted(Path.home().glob(".pyenv/versions/3.[678].*/bin/python3"))


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def test_a_command_is_answered_with_both_streams_and_its_status() -> None:
    found = collected(shell("a", "echo out; echo err >&2; exit 7"))["a"]
    assert (found["rc"], found["stdout"], found["stderr"]) == (7, "out\n", "err\n")
    assert found["argv"] == ["sh", "-c", "echo out; echo err >&2; exit 7"]
    assert 0 <= found["seconds"] < 5


def test_what_is_not_there_is_missing_and_what_may_not_be_read_is_denied(tmp_path: Path) -> None:
    found = collected(
        {"name": "a", "argv": ["gpu-provision-no-such-program"]},
        {"name": "file:b", "builtin": "file", "args": [str(tmp_path / "none")]},
        shell("c", "echo 'dmesg: read kernel buffer failed: Operation not permitted' >&2; exit 1"),
        {"name": "file:d", "builtin": "file", "args": ["/etc"]},
    )
    assert found["a"]["missing"]
    assert found["file:b"]["missing"]
    assert found["c"]["denied"]
    assert found["c"]["rc"] == 1
    assert found["file:d"]["not_asked"] == "it is a directory"


def test_bytes_that_are_no_text_and_a_missing_last_newline_come_through() -> None:
    found = collected(shell("a", r"printf 'caf\351 \000end'"))["a"]
    assert found["stdout"] == "caf\\xe9 \x00end"


def test_the_environment_is_the_same_on_every_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    monkeypatch.setenv("LD_PRELOAD_LIKE", "x")
    said = collected(shell("a", "echo $LC_ALL:$PATH:$LD_PRELOAD_LIKE:$HOME; tty; ls -l /proc/self/fd/0"))["a"]
    assert said["stdout"].startswith("C:/usr/local/sbin:")
    assert "/usr/sbin" in said["stdout"]
    assert ":/nonexistent\n" in said["stdout"]
    assert "not a tty" in said["stdout"]
    assert "/dev/null" in said["stdout"]


def test_a_command_that_does_not_end_costs_its_limit_and_leaves_nothing(tmp_path: Path) -> None:
    note = tmp_path / "pids"
    began = time.monotonic()
    found = collected(
        # It ignores what asks it to end, has a child, and the child leaves the process group.
        shell("a", f"trap '' TERM HUP; setsid sleep 300 & echo $! $$ > {note}; sleep 300", seconds=1.0),
        shell("b", "echo fine"),
    )
    assert time.monotonic() - began < 10
    assert (found["a"]["rc"], found["a"]["timed_out"], found["a"]["seconds"]) == (None, True, 1.0)
    assert "left_behind" not in found["a"]
    assert found["b"]["stdout"] == "fine\n"


def test_no_process_of_an_ended_item_lives_on() -> None:
    found = collected(
        shell("a", "sleep 300 >/dev/null 2>&1 & echo $!"), shell("b", "sleep 301 & echo $!; exit 3")
    )
    time.sleep(0.3)
    assert (found["a"]["rc"], found["b"]["rc"]) == (0, 3)
    left = [pid for pid in (int(found[name]["stdout"]) for name in "ab") if alive(pid)]
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert not left


def test_a_child_that_keeps_the_pipe_open_is_not_waited_for() -> None:
    began = time.monotonic()
    found = collected(shell("a", "sleep 300 & echo done", seconds=30.0))["a"]
    assert (found["rc"], found["stdout"]) == (0, "done\n")
    assert time.monotonic() - began < 5


def test_output_is_bounded_and_marked() -> None:
    found = collected(shell("a", "yes"), shell("b", "head -c 5000 /dev/zero | tr '\\0' x", limit=1000))
    assert found["a"]["cut"]
    assert len(found["a"]["stdout"]) == 512 * 1024
    assert found["b"]["cut"]
    assert found["b"]["stdout"] == "x" * 1000


def test_a_large_file_is_cut_and_a_log_gives_its_end(tmp_path: Path) -> None:
    big = Path("/var/tmp") / f"gpu-provision-test-{os.getpid()}"
    big.write_text("first\n" + "x" * 300_000 + "\nlast\n")
    try:
        found = collected(
            {"name": "file:a", "builtin": "file", "args": [str(big)]},
            {"name": "b", "builtin": "tail", "args": [str(big), 20]},
        )
    finally:
        big.unlink()
    assert found["file:a"]["cut"]
    assert found["file:a"]["text"].startswith("first\n")
    assert found["b"]["text"] == "last\n"
    assert found["b"]["from_the_end"]
    assert found["file:a"]["mode"] == "0644"
    assert found["file:a"]["owner"]


def test_items_of_a_lane_wait_for_each_other_and_stop_after_a_hang() -> None:
    found = collected(
        shell("a", "echo $(date +%s.%N); sleep 0.3", lane="l"),
        shell("b", "echo $(date +%s.%N)", lane="l"),
        shell("c", "sleep 300", lane="l", seconds=0.5),
        shell("d", "echo never", lane="l"),
        shell("e", "echo other"),
    )
    assert float(found["b"]["stdout"]) - float(found["a"]["stdout"]) >= 0.3
    assert found["c"]["timed_out"]
    assert found["d"] == {"not_asked": "c did not answer"}
    assert found["e"]["stdout"] == "other\n"


def test_the_whole_has_a_limit_too() -> None:
    began = time.monotonic()
    found = collected(
        *(shell(f"s{n}", "sleep 300", seconds=100.0) for n in range(6)), shell("x", "echo x"), seconds=2.0
    )
    assert time.monotonic() - began < 12
    assert found["s0"]["timed_out"]
    assert found["s3"]["timed_out"]
    assert "time limit for the whole" in found["s5"]["not_asked"]
    assert "time limit for the whole" in found["x"]["not_asked"]


def test_a_builtin_that_hangs_costs_its_limit_and_the_rest_is_answered() -> None:
    fifo = Path("/var/tmp") / f"gpu-provision-test-{os.getpid()}.fifo"
    os.mkfifo(fifo)
    try:
        found = collected(
            {"name": "one", "builtin": "sysctl", "args": [["kernel.ostype"]], "lane": "l"},
            {"name": "two", "builtin": "tail", "args": [str(fifo), 10], "lane": "l", "seconds": 0.5},
            {"name": "three", "builtin": "sysctl", "args": [["kernel.ostype"]], "lane": "l"},
        )
    finally:
        fifo.unlink()
    assert found["one"]["stdout"] == found["three"]["stdout"] == "kernel.ostype = Linux\n"
    assert found["two"]["timed_out"]
    assert found["two"]["rc"] is None


def test_a_defect_in_a_builtin_shows_and_spares_the_others() -> None:
    found = collected(
        {"name": "one", "builtin": "sysctl", "args": [17], "lane": "l"},
        {"name": "two", "builtin": "dmi", "lane": "l"},
    )
    assert found["one"]["not_asked"].startswith("the collector failed at it: TypeError")
    assert found["two"]["rc"] == 0


def test_globs_give_a_list_and_a_file_each() -> None:
    folder = Path("/var/tmp") / f"gpu-provision-test-{os.getpid()}"
    folder.mkdir()
    (folder / "b.conf").write_text("token = abcdef-secret\n")
    (folder / "a.conf").write_text("plain\n")
    try:
        found = collected(
            {"name": f"glob:{folder}/*.conf", "glob": f"{folder}/*.conf"},
            {"name": "glob:/nowhere/*", "glob": "/nowhere/*"},
        )
    finally:
        for each in folder.iterdir():
            each.unlink()
        folder.rmdir()
    assert found[f"glob:{folder}/*.conf"]["paths"] == [f"{folder}/a.conf", f"{folder}/b.conf"]
    assert found[f"file:{folder}/b.conf"]["text"] == "token = ***\n"
    assert found["glob:/nowhere/*"]["paths"] == []


def test_what_would_load_or_start_something_is_not_asked() -> None:
    found = collected(
        shell("docker.info", "echo started", when="docker-active"),
        shell("nvidia-smi.query", "echo loaded", when="driver-loaded"),
    )
    runs = any(
        Path(p, "comm").read_text().strip() == "dockerd"
        for p in Path("/proc").glob("[0-9]*")
        if (p / "comm").exists()
    )
    loaded = Path("/sys/module/nvidia").exists() or Path("/proc/driver/nvidia/version").exists()
    if not runs:
        assert found["docker.info"] == {"not_asked": "docker.service is not active"}
    if not loaded:
        assert found["nvidia-smi.query"]["not_asked"].startswith("the nvidia module is not loaded")


@pytest.mark.skipif(os.geteuid() != 0, reason="the read-only view needs root")
def test_as_root_no_child_can_write(tmp_path: Path) -> None:
    target = Path("/var/tmp") / f"gpu-provision-test-{os.getpid()}"
    found = collected(
        shell("a", f"echo x > {target}"),
        shell("b", f"mknod {target} c 1 3"),
        shell("c", "echo x > /tmp/scratch && cat /tmp/scratch"),
        shell("d", "grep -c . /proc/self/mountinfo; grep ' / / ' /proc/self/mountinfo", host_mounts=True),
    )
    assert found["a"]["rc"] != 0
    assert "Read-only" in found["a"]["stderr"]
    assert found["b"]["rc"] != 0
    assert not target.exists()
    assert found["c"]["stdout"] == "x\n"
    assert not Path("/tmp/scratch").exists()
    own = Path("/proc/self/mountinfo").read_text().splitlines()
    assert found["d"]["stdout"].splitlines()[0] == str(len(own))


@pytest.mark.parametrize("python", OLD_PYTHONS, ids=lambda path: path.parts[-3])
def test_an_old_python_does_it_too(python: Path) -> None:
    found = collected(
        shell("a", "echo old"),
        {"name": "pci", "builtin": "pci"},
        {"name": "time", "builtin": "clock"},
        python=str(python),
    )
    assert found["a"]["stdout"] == "old\n"
    assert found["python"]["stdout"].startswith(f"Python {python.parts[-3]}")
    assert "Timezone=" in found["time"]["stdout"]


def test_it_imports_nothing_slow() -> None:
    # A host pays for each import on every recording.
    from provision.recording.program import sources

    for name, text in sources():
        for module in (
            "typing",
            "argparse",
            "logging",
            "asyncio",
            "concurrent.futures",
            "ctypes",
            "resource",
        ):
            assert f"\nimport {module}\n" not in text, (name, module)
