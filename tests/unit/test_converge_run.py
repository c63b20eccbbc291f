"""Converging this machine with small playbooks: events, results, secrets, the user's settings, stopping."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING

import pytest

from provision.converge import (
    ConvergeResult,
    Event,
    HostVars,
    Kind,
    Outcome,
    State,
    TaskStatus,
    connection,
    converge,
)
from provision.errors import Failure
from provision.transport import ssh
from provision.transport.target import Target

if TYPE_CHECKING:
    from collections.abc import Iterator
from contextlib import suppress

SECRET = "correct horse battery"
LOCAL = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}

PLAY = """
- name: Try
  hosts: all
  gather_facts: false
  tasks:
    - name: Show
      ansible.builtin.debug:
        msg: "{{ braces }}"
    - name: Write
      ansible.builtin.copy:
        content: "{{ password }}"
        dest: "{{ to }}"
        mode: "0600"
      no_log: true
    - name: Fail hiding
      ansible.builtin.command: "cat /nonexistent/{{ password }}"
      no_log: true
      ignore_errors: true
      changed_when: false
    - name: Rescue
      block:
        - name: Fail in a block
          ansible.builtin.fail:
            msg: rescued
      rescue:
        - name: Go on
          ansible.builtin.debug:
            msg: fine
    - name: Break
      ansible.builtin.command: cat /nonexistent/file
      changed_when: false
      when: broken
    - name: Last
      ansible.builtin.file:
        path: "{{ to }}"
        state: absent
"""


@dataclass
class Tried:
    result: ConvergeResult
    events: list[Event]
    run_dir: Path
    home: Path

    def of(self, host: str, kind: Kind = Kind.RESULT) -> list[Event]:
        return [e for e in self.events if e.host == host and e.kind is kind]


def hosts(tmp: Path) -> dict[str, HostVars]:
    def host(name: str, broken: bool) -> HostVars:
        variables = {
            **LOCAL,
            "braces": "{{ no template }}",
            "to": str(tmp / name.strip("@")),
            "broken": broken,
        }
        return HostVars(name, (), variables, {"password": SECRET})

    return {"gpu01": host("gpu01", True), "root@10.0.0.9": host("root@10.0.0.9", False)}


@pytest.fixture(scope="module")
def tried(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tried]:
    """Two hosts, one of which fails, for a user whose own Ansible settings would break every run."""
    tmp = tmp_path_factory.mktemp("converge")
    home = tmp / "home"
    home.mkdir()
    (home / ".ansible.cfg").write_text(
        "[defaults]\nstdout_callback = minimal\nremote_user = nobody\nstrategy = nonsense\n"
    )
    playbook = tmp / "play.yml"
    playbook.write_text(PLAY)
    events: list[Event] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(home))
        patch.setenv("ANSIBLE_STRATEGY", "nonsense")
        patch.setenv("ANSIBLE_CALLBACKS_ENABLED", "nonsense")
        patch.setenv("LC_ALL", "C")
        run_dir = tmp / "run"
        result = converge(hosts(tmp), run_dir, on_event=events.append, playbook=str(playbook))
        yield Tried(result, events, run_dir, home)


def test_each_host_gets_its_own_end(tried: Tried) -> None:
    bad, good = tried.result.hosts["gpu01"], tried.result.hosts["root@10.0.0.9"]
    assert (bad.outcome, bad.state, bad.task) == (Outcome.FAILED, State.PARTIAL, "Break")
    assert bad.message == "exit code 1: cat: /nonexistent/file: No such file or directory"
    assert (good.outcome, good.state, good.message) == (Outcome.DONE, State.DONE, "")
    assert (good.changed, good.failed, tried.result.ok) == (2, 2, False)


def test_events_follow_the_tasks_in_order_with_their_time(tried: Tried) -> None:
    results = tried.of("root@10.0.0.9")
    assert [e.task for e in results] == [
        "Show",
        "Write",
        "Fail hiding",
        "Fail in a block",
        "Go on",
        "Break",
        "Last",
    ]
    assert [e.status for e in results][-2:] == [TaskStatus.SKIPPED, TaskStatus.CHANGED]
    assert all(e.seconds is not None and e.seconds >= 0 for e in results)
    assert [e.task for e in tried.of("root@10.0.0.9", Kind.TASK)] == [e.task for e in results]


def test_text_that_looks_like_a_template_stays_text(tried: Tried) -> None:
    assert tried.of("gpu01")[0].status is TaskStatus.OK


def test_the_event_file_holds_what_was_heard(tried: Tried) -> None:
    file = tried.run_dir / "events.jsonl"
    assert file.stat().st_mode & 0o777 == 0o600
    kinds = [json.loads(line)["kind"] for line in file.read_text().splitlines()]
    assert kinds == [str(e.kind) for e in tried.events]


def test_a_secret_is_used_and_left_nowhere(tried: Tried) -> None:
    assert [e.status for e in tried.of("gpu01")][1] is TaskStatus.CHANGED
    files = [p for p in tried.run_dir.rglob("*") if p.is_file() and "ansible_collections" not in p.parts]
    assert {p.name for p in files} >= {"inventory.yml", "ansible.cfg", "ansible.log", "events.jsonl"}
    assert not [p for p in files if SECRET in p.read_text(errors="replace")]
    assert all(SECRET not in str(e) for e in tried.events)
    assert any(e.message == "(not shown: the task handles secrets)" for e in tried.of("gpu01"))


def test_nothing_is_written_into_the_users_home(tried: Tried) -> None:
    # .ansible is what a host keeps for its login user; here this machine is the host.
    assert [p.name for p in tried.home.iterdir() if p.name != ".ansible"] == [".ansible.cfg"]


def slow(tmp: Path, seconds: int, *, trap: bool = False) -> tuple[dict[str, HostVars], str, Path]:
    """One host whose first task takes `seconds` and whose second leaves a mark."""
    mark = tmp / "second-task-ran"
    ignore = "trap '' INT TERM; " if trap else ""
    playbook = tmp / "slow.yml"
    playbook.write_text(
        dedent(f"""
        - name: Slow
          hosts: all
          gather_facts: false
          tasks:
            - name: First
              ansible.builtin.shell: "{ignore}touch {tmp}/started; sleep {seconds}; touch {tmp}/first-ended"
            - name: Second
              ansible.builtin.file:
                path: {mark}
                state: touch
                mode: "0600"
        """)
    )
    return {"h": HostVars("h", (), LOCAL)}, str(playbook), mark


def cancel_once(path: Path, cancel: threading.Event) -> threading.Thread:
    def wait() -> None:
        while not path.exists():
            time.sleep(0.05)
        cancel.set()

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    return thread


def test_a_stop_lets_the_running_task_end_and_begins_no_other(tmp_path: Path) -> None:
    given, playbook, mark = slow(tmp_path, 2)
    cancel, events = threading.Event(), list[Event]()
    cancel_once(tmp_path / "started", cancel)
    result = converge(
        given, tmp_path / "run", on_event=events.append, cancel=cancel, playbook=playbook, grace=60
    )
    assert (tmp_path / "first-ended").exists()
    assert not mark.exists()
    assert result.interrupted
    assert (result.hosts["h"].outcome, result.hosts["h"].state) == (Outcome.INTERRUPTED, State.PARTIAL)
    assert result.hosts["h"].message == "stopped after: First"
    assert [e.kind for e in events if e.kind in (Kind.STOPPING, Kind.STOPPED)] == [
        Kind.STOPPING,
        Kind.STOPPED,
    ]


def test_a_task_that_does_not_end_is_ended_within_the_bound(tmp_path: Path) -> None:
    given, playbook, mark = slow(tmp_path, 300, trap=True)
    cancel = threading.Event()
    cancel_once(tmp_path / "started", cancel)
    began = time.monotonic()
    result = converge(given, tmp_path / "run", cancel=cancel, playbook=playbook, grace=0.5)
    assert time.monotonic() - began < 40
    assert not mark.exists()
    assert not (tmp_path / "first-ended").exists()
    assert result.hosts["h"].message == "stopped while this ran: First"
    assert not _with_in_argv(str(tmp_path))


def test_a_failure_of_the_reader_ends_ansible_too(tmp_path: Path) -> None:
    given, playbook, mark = slow(tmp_path, 300)

    def broken(event: Event) -> None:
        if event.kind is Kind.TASK:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        converge(given, tmp_path / "run", on_event=broken, playbook=playbook)
    assert not mark.exists()
    assert not _with_in_argv(str(tmp_path))


CTRL_C = """
import json, sys
from pathlib import Path
from provision.converge import HostVars, converge
variables = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
result = converge({"h": HostVars("h", (), variables)}, Path(sys.argv[2]), playbook=sys.argv[1], grace=60)
print(json.dumps(result.as_dict()))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_stops_between_two_tasks_and_names_the_state(tmp_path: Path, number: signal.Signals) -> None:
    _, playbook, mark = slow(tmp_path, 2)
    argv = [sys.executable, "-c", CTRL_C, playbook, str(tmp_path / "run")]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        while not (tmp_path / "started").exists():
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(number)
        out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    host = json.loads(out)["hosts"][0]
    assert (host["outcome"], host["message"]) == ("interrupted", "stopped after: First")
    assert not mark.exists()


def _with_in_argv(word: str) -> list[str]:
    """The command lines of all processes that name `word`, zombies left out."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            found.append(file.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return [line for line in found if word in line]


def test_ansible_that_does_not_start_says_why_in_one_failure(tmp_path: Path) -> None:
    playbook = tmp_path / "bad.yml"
    playbook.write_text("- hosts: all\n  tasks:\n    - no.such.collection.module:\n")
    with pytest.raises(Failure, match="couldn't resolve module/action"):
        converge({"h": HostVars("h", (), LOCAL)}, tmp_path / "run", playbook=str(playbook))


def test_a_host_that_cannot_be_reached_is_told_in_words_and_the_others_go_on(tmp_path: Path) -> None:
    playbook = tmp_path / "look.yml"
    tasks = "[{ansible.builtin.command: 'true', changed_when: false}]"
    playbook.write_text(f"- hosts: all\n  gather_facts: false\n  tasks: {tasks}\n")
    # Nobody listens on the discard port of the loopback interface.
    target = Target("gone", "127.0.0.1", port=9)
    variables = connection(target, python="/usr/bin/python3", options=ssh.options(target))
    given = {"gone": HostVars("gone", (), variables, target=target), "h": HostVars("h", (), LOCAL)}
    result = converge(given, tmp_path / "run", playbook=str(playbook))
    assert result.hosts["h"].outcome is Outcome.DONE
    gone = result.hosts["gone"]
    assert (gone.outcome, gone.state) == (Outcome.UNREACHABLE, State.UNTOUCHED)
    assert "refused" in gone.message
    assert "Failed to connect" not in gone.message
