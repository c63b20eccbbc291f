"""A child process ends with its caller: at its limit, at Ctrl-C, and with all that it started."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from provision.errors import Unreached
from provision.transport import child
from provision.transport.local import Local


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def wait_for(path: Path) -> int:
    for _ in range(200):
        if path.exists() and path.read_text().strip():
            return int(path.read_text())
        time.sleep(0.02)
    pytest.fail("the child did not start")


def test_streams_status_and_input_come_through() -> None:
    done = child.run(["sh", "-c", "cat; echo err >&2; exit 3"], b"in\0put")
    assert (done.rc, done.stdout, done.err) == (3, b"in\0put", "err\n")
    assert child.run(["sh", "-c", "kill -9 $$"]).rc == 128 + 9
    assert child.run(["cat"]).stdout == b""


def test_more_output_than_a_pipe_holds() -> None:
    assert len(child.run(["sh", "-c", "head -c 3000000 /dev/zero"]).stdout) == 3_000_000


def test_at_its_limit_the_whole_group_is_killed(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    with pytest.raises(child.TimedOut) as caught:
        child.run(["sh", "-c", f"echo said >&2; sleep 300 & echo $! > {note}; sleep 300"], timeout=0.5)
    assert caught.value.seconds == 0.5
    assert caught.value.stderr == b"said\n"
    time.sleep(0.1)
    assert not alive(wait_for(note))


def test_an_interrupt_leaves_no_child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    note = tmp_path / "pid"
    communicate = child.subprocess.Popen.communicate

    def interrupted(process: object, *_: object) -> None:
        monkeypatch.setattr(child.subprocess.Popen, "communicate", communicate)
        wait_for(note)
        raise KeyboardInterrupt

    monkeypatch.setattr(child.subprocess.Popen, "communicate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        child.run(["sh", "-c", f"echo $$ > {note}; sleep 300"])
    assert not alive(wait_for(note))


def test_children_of_other_threads_can_be_stopped(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    ended: list[child.Completed] = []
    thread = threading.Thread(
        target=lambda: ended.append(child.run(["sh", "-c", f"echo $$ > {note}; sleep 300"]))
    )
    thread.start()
    pid = wait_for(note)
    child.stop_all()
    thread.join(30)
    assert not thread.is_alive()
    assert ended[0].rc == 137
    assert not alive(pid)


def test_a_background_process_that_keeps_stderr_open_is_not_waited_for() -> None:
    began = time.monotonic()
    done = child.run(["sh", "-c", "(sleep 5 >/dev/null) & echo out"], timeout=20)
    assert done.stdout == b"out\n"
    assert time.monotonic() - began < 3


def test_the_local_machine_answers_as_a_session_does() -> None:
    with Local() as local:
        assert local.run(["echo", "a b"]).stdout == b"a b\n"
        with pytest.raises(Unreached, match="did not end within"):
            local.run(["sleep", "300"], timeout=0.2)
        with pytest.raises(Unreached, match="could not be started"):
            local.run(["/gpu-provision/none"])
