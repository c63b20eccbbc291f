"""The callback's messages, reading its lines, and what events come to."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest

from provision.converge.events import Event, Kind, TaskStatus
from provision.converge.result import Fold, HostResult, Outcome, State
from provision.profile.tree import root


@pytest.fixture(scope="module")
def plugin() -> Any:
    path = root() / "plugins" / "callback" / "events.py"
    spec = importlib.util.spec_from_file_location("events_callback", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TRACEBACK = 'Traceback (most recent call last):\n  File "x.py", line 1\nOSError: [Errno 28] No space left'


WRAPPED = "Finalization of task args for 'a.b' failed: Error while resolving value for 'msg':"


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ({"msg": "Task failed: Module failed: No package matching 'x'"}, "No package matching 'x'"),
        (
            {"msg": "non-zero return code", "rc": 2, "stderr": "ls: no such file\n", "stdout": "x"},
            "exit code 2: ls: no such file",
        ),
        ({"msg": "non-zero return code", "rc": 1, "stderr": "", "stdout": "why\n"}, "exit code 1: why"),
        (
            {"msg": "MODULE FAILURE\nSee stdout/stderr for the exact error", "module_stderr": TRACEBACK},
            "OSError: [Errno 28] No space left",
        ),
        (
            {"msg": "'apt-get install' failed: E: held", "stderr": "E: held", "stdout": "Reading"},
            "'apt-get install' failed: E: held",
        ),
        ({"msg": "cannot build", "stderr": "make: error 2"}, "cannot build\nmake: error 2"),
        (
            {"censored": "the output has been hidden", "msg": "s3cret"},
            "(not shown: the task handles secrets)",
        ),
        (
            {"msg": "failed to transfer file to /a /b:\n\ndd: error writing '/b': No space left on device\n"},
            "a disk of the host is full (`df -h` shows which); what was there before is as it was",
        ),
        ({}, "failed without a message"),
        (
            {"msg": f"Task failed: {WRAPPED} 'x' is undefined"},
            "'x' is undefined",
        ),
        (
            {"msg": "Failed to connect to the host via ssh: Permission denied", "unreachable": True},
            "Permission denied",
        ),
        (
            {
                "msg": "One or more items failed",
                "results": [
                    {"item": "a", "_ansible_item_label": "a", "msg": "fine"},
                    {"item": "b", "_ansible_item_label": "b", "failed": True, "msg": "broken"},
                    {"item": {"n": 1}, "failed": True, "msg": "also"},
                ],
            },
            'b: broken\n{"n": 1}: also',
        ),
    ],
)
def test_a_failure_is_told_in_its_own_words_and_once(
    plugin: Any, result: dict[str, Any], message: str
) -> None:
    assert plugin.message(result) == message


def test_only_the_end_of_a_long_output_is_kept(plugin: Any) -> None:
    told = plugin.message(
        {"msg": "non-zero return code", "stderr": "\n".join(f"line {n}" for n in range(100))}
    )
    assert told.splitlines() == [f"line {n}" for n in range(80, 100)]
    assert len(plugin.message({"msg": "x" * 100_000})) <= plugin.LONGEST_MESSAGE + 2


@pytest.mark.parametrize(
    "line",
    [
        "",
        "{",
        "[]",
        "null",
        '{"kind": "task"}',
        '{"kind": "new", "time": 1}',
        '{"kind": "task", "time": "x"}',
    ],
)
def test_a_line_that_is_no_event_is_left_out(line: str) -> None:
    assert Event.from_line(line) is None


def test_an_event_line_is_read() -> None:
    line = '{"kind": "result", "time": 3.5, "host": "h", "role": "nccl", "task": "t", "status": "changed"}'
    event = Event.from_line(line)
    assert event == Event(Kind.RESULT, 3.5, "h", "nccl", "t", status=TaskStatus.CHANGED)


def task(role: str, name: str, action: str = "ansible.builtin.copy", time: float = 1.0) -> Event:
    return Event(Kind.TASK, time, "h", role, name, action)


def ended(role: str, name: str, status: TaskStatus, message: str = "", **more: Any) -> Event:
    action = more.pop("action", "ansible.builtin.copy")
    return Event(Kind.RESULT, 2.0, "h", role, name, action, status, 1.0, message, **more)


def folded(*events: Event, interrupted: bool = False) -> HostResult:
    fold = Fold({"h": ("nvidia_driver", "nccl")})
    for event in events:
        fold.add(event)
    return fold.result({"h": "root@h"}, interrupted=interrupted, seconds=3, now=61.0).hosts["root@h"]


OK, CHANGED, FAILED = TaskStatus.OK, TaskStatus.CHANGED, TaskStatus.FAILED
END, BAD_END = Event(Kind.END, 3.0), Event(Kind.END, 3.0, failed_hosts=("h",))


def test_a_host_that_ran_all_roles_is_done() -> None:
    host = folded(
        task("nvidia_driver", "a"),
        ended("nvidia_driver", "a", CHANGED),
        task("nccl", "b"),
        ended("nccl", "b", OK),
        END,
    )
    assert (host.outcome, host.state, host.roles_done) == (
        Outcome.DONE,
        State.DONE,
        ("nvidia_driver", "nccl"),
    )
    assert (host.ok, host.changed, host.executions, host.message) == (1, 1, 2, "")


def test_a_failed_host_names_role_task_and_message() -> None:
    host = folded(
        task("nvidia_driver", "a"),
        ended("nvidia_driver", "a", CHANGED),
        task("nccl", "b"),
        ended("nccl", "b", FAILED, "no room"),
        BAD_END,
    )
    assert (host.outcome, host.state, host.roles_done) == (Outcome.FAILED, State.PARTIAL, ("nvidia_driver",))
    assert (host.role, host.task, host.message) == ("nccl", "b", "no room")


@pytest.mark.parametrize(
    ("action", "status", "state"),
    [
        ("ansible.builtin.assert", FAILED, State.UNTOUCHED),
        ("ansible.builtin.apt", FAILED, State.PARTIAL),
        ("ansible.builtin.apt", TaskStatus.UNREACHABLE, State.UNTOUCHED),
    ],
)
def test_untouched_only_where_nothing_can_have_changed(action: str, status: TaskStatus, state: State) -> None:
    host = folded(task("nccl", "a", action), ended("nccl", "a", status, "m", action=action), BAD_END)
    assert host.state is state


@pytest.mark.parametrize("left", [State.UNTOUCHED, State.REVERTED])
def test_a_module_of_ours_tells_the_state_it_left(left: State) -> None:
    action = "gpu_provision.host.commit_confirm"
    failed = ended("nccl", "a", FAILED, "m", action=action, left=str(left))
    assert folded(task("nccl", "a", action), failed, BAD_END).state is left
    before = (task("nvidia_driver", "b"), ended("nvidia_driver", "b", CHANGED))
    assert folded(*before, task("nccl", "a", action), failed, BAD_END).state is State.PARTIAL
    odd = ended("nccl", "a", FAILED, "m", action=action, left="armed")
    assert folded(task("nccl", "a", action), odd, BAD_END).state is State.PARTIAL


def test_a_snapshot_changes_nothing_of_what_a_host_is() -> None:
    action = "gpu_provision.host.snapshot"
    kept = (task("a", "keep", action), ended("a", "keep", TaskStatus.CHANGED, action=action))
    refused = ended("a", "look", TaskStatus.FAILED, "no", action="ansible.builtin.fail")
    end = Event(Kind.END, 2.0, failed_hosts=("h",))
    look = task("a", "look", "ansible.builtin.fail")
    assert folded(*kept, look, refused, end).state is State.UNTOUCHED
    write = (task("a", "write"), ended("a", "write", TaskStatus.CHANGED))
    assert folded(*kept, *write, look, refused, end).state is State.PARTIAL


def test_a_host_lost_after_work_began_is_not_called_untouched() -> None:
    host = folded(
        task("nccl", "a"),
        ended("nccl", "a", OK),
        task("nccl", "b"),
        ended("nccl", "b", TaskStatus.UNREACHABLE, "gone"),
        BAD_END,
    )
    assert (host.outcome, host.state) == (Outcome.UNREACHABLE, State.PARTIAL)


def test_a_rescued_or_ignored_failure_is_none() -> None:
    rescued = folded(
        task("nccl", "a"), ended("nccl", "a", FAILED, "m"), task("nccl", "b"), ended("nccl", "b", OK), END
    )
    assert rescued.outcome is Outcome.DONE
    ignored = folded(task("nccl", "a"), ended("nccl", "a", FAILED, "m", ignored=True), interrupted=True)
    assert ignored.outcome is Outcome.INTERRUPTED


def test_an_interrupted_host_names_where_it_was() -> None:
    running = folded(task("nvidia_driver", "Build the module"), interrupted=True)
    assert running.outcome is Outcome.INTERRUPTED
    assert running.message == "stopped while this ran: nvidia_driver: Build the module"
    assert running.state is State.PARTIAL
    assert running.seconds == 60.0, "the task's own time counts, though no result came"
    between = folded(task("nccl", "a"), ended("nccl", "a", CHANGED), interrupted=True)
    assert between.message == "stopped after: nccl: a"
    assert between.seconds == 1.0
    assert (folded(interrupted=True).state, folded(interrupted=True).message) == (
        State.UNTOUCHED,
        "stopped before its first task",
    )


def test_roles_that_are_not_planned_for_a_host_leave_no_trace() -> None:
    skipped = ended("gpu_settings", "x", TaskStatus.SKIPPED)
    host = folded(
        task("nccl", "a"), ended("nccl", "a", OK), task("gpu_settings", "x"), skipped, interrupted=True
    )
    assert (host.role, host.skipped) == ("nccl", 0)


def test_diffs_are_gathered_for_each_host() -> None:
    fold = Fold({"h": ("nccl",)})
    fold.add(Event(Kind.DIFF, 1.0, "h", "nccl", "Write", message="+a\n"))
    assert fold.result({"h": "h"}, interrupted=False, seconds=1, now=2.0).diffs == {"h": "Write\n+a\n"}
