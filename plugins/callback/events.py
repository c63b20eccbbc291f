"""Print what happens in a play as one JSON object a line, for a program that reads along."""

from __future__ import annotations

DOCUMENTATION = """
name: events
type: stdout
short_description: One JSON object a line for each thing that happens
description:
  - Writes an event when a host enters a role, begins a task, or a task ended on a host, with the time it took
    and, where it failed, its message without the rest of the result.
  - Results of tasks with C(no_log) carry no message.
options:
  descriptor:
    description: File descriptor that the lines are written to. Without one they go to standard output.
    type: int
    env:
      - name: GPU_PROVISION_EVENTS_FD
  stop_file:
    description:
      - When this file comes into being, no further task begins. Tasks that run are waited for.
    type: path
    env:
      - name: GPU_PROVISION_STOP_FILE
author: The gpu-provision authors
"""

import importlib
import json
import multiprocessing
import os
import re
import time
from pathlib import Path
from typing import Any

from ansible.plugins.callback import CallbackBase

LONGEST_MESSAGE = 4000
TAIL_LINES = 20
OURS = "gpu_provision.host."

# What modules say when the cause stands in their output and not in `msg`.
EMPTY_WORDS = (
    "non-zero return code",
    "module failure",
    "see stdout/stderr for the exact error",
    "one or more items failed",
)
# Ansible's own words for a full disk are paths of its temporary files and the output of dd.
NO_ROOM = re.compile(
    r"(failed to transfer file|failed to replace|could not replace|failed to create temporary directory).*"
    r"No space left on device",
    re.I | re.S,
)
# What Ansible wraps around the words of whoever failed.
WRAPPING = re.compile(
    r"(?:(?:Task|Action|Module) failed: "
    r"|Failed to connect to the host via ssh: "
    r"|Finalization of task args for '[^']*' failed: "
    r"|Error while resolving value for '[^']*': "
    r"|The lookup plugin '[^']*' failed: )+"
)


def message(result: dict[str, Any]) -> str:
    """The reason of a failed result, for a person: no invocation, no traceback, nothing twice."""
    if "censored" in result:
        return "(not shown: the task handles secrets)"
    items = [r for r in result.get("results") or () if isinstance(r, dict) and _bad(r)]
    if items:
        parts = [f"{label}: {message(r)}" if (label := _label(r)) else message(r) for r in items]
        return _bounded("\n".join(dict.fromkeys(parts)))
    said = str(result.get("msg") or "").strip()
    if wrapped := WRAPPING.match(said):
        said = said[wrapped.end() :]
    if NO_ROOM.search(said):
        return "a disk of the host is full (`df -h` shows which); what was there before is as it was"
    if said and not any(words in said.lower() for words in EMPTY_WORDS):
        tail = _tail(str(result.get("stderr") or ""))
        return _bounded(f"{said}\n{tail}" if tail and tail not in said else said)
    for key in ("stderr", "module_stderr", "stdout", "module_stdout"):
        if tail := _tail(str(result.get(key) or "")):
            return _bounded(f"exit code {result['rc']}: {tail}" if result.get("rc") else tail)
    return _bounded(said or "failed without a message")


def _bad(item: dict[str, Any]) -> bool:
    return bool(item.get("failed") or item.get("unreachable"))


def _label(item: dict[str, Any]) -> str:
    label = item.get("_ansible_item_label", item.get("item", ""))
    return label if isinstance(label, str) else json.dumps(label, default=str) if label else ""


def _tail(output: str) -> str:
    """The last lines of an output; of a Python traceback only its last line, which names the cause."""
    lines = [line.rstrip() for line in output.strip().splitlines() if line.strip()]
    for at, line in enumerate(lines):
        if line.startswith("Traceback (most recent call last)"):
            return "\n".join([*lines[:at], lines[-1]][-TAIL_LINES:])
    return "\n".join(lines[-TAIL_LINES:])


def _bounded(text: str) -> str:
    return text if len(text) <= LONGEST_MESSAGE else "… " + text[-LONGEST_MESSAGE:]


def _of(result: Any, name: str) -> Any:
    """`result.host` from ansible-core 2.19 on, `result._host` before."""
    return getattr(result, name if hasattr(result, name) else f"_{name}")


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "stdout"
    CALLBACK_NAME = "gpu_provision.host.events"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._started: dict[tuple[str, str], float] = {}
        self._roles: dict[str, str | None] = {}

    def _emit(self, kind: str, **fields: Any) -> None:
        given = {k: v for k, v in fields.items() if v is not None}
        line = (
            json.dumps(
                {"kind": kind, "time": round(time.time(), 3), **given}, ensure_ascii=False, default=str
            )
            + "\n"
        )
        descriptor = self.get_option("descriptor")
        if descriptor is None:
            self._display.display(line.rstrip("\n"))
            return
        data = line.encode("utf-8", "replace")
        try:
            while data:
                data = data[os.write(int(descriptor), data) :]
        except BrokenPipeError:
            # Whoever started this play and would tell a person about it is gone.
            raise KeyboardInterrupt from None

    def v2_playbook_on_play_start(self, play: Any) -> None:
        self._emit("play", name=play.get_name().strip())
        # Workers are forks of this process: what is imported here they do not import for each task and host.
        importlib.import_module(f"ansible_collections.{OURS}plugins.lookup.wanted")

    def v2_playbook_on_no_hosts_matched(self) -> None:
        self._emit("error", message="no host of the inventory matches the play")

    def v2_runner_on_start(self, host: Any, task: Any) -> None:
        name, role = host.get_name(), _role(task)
        self._started[name, task._uuid] = time.monotonic()
        if self._roles.get(name) != role:
            self._roles[name] = role
            if role:
                self._emit("role", host=name, role=role)
        self._emit("task", host=name, role=role, task=_title(task), action=task.action)

    def v2_runner_on_ok(self, result: Any) -> None:
        self._result(result, "changed" if _of(result, "result").get("changed") else "ok")

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        outcome, task = _of(result, "result"), _of(result, "task")
        # Our own modules say in what state a failure left the host.
        left = outcome.get("state") if str(task.action).startswith(OURS) else None
        self._result(result, "failed", message=message(outcome), ignored=ignore_errors or None, left=left)

    def v2_runner_on_unreachable(self, result: Any) -> None:
        self._result(result, "unreachable", message=message(_of(result, "result")))

    def v2_runner_on_skipped(self, result: Any) -> None:
        self._result(result, "skipped")

    def v2_runner_retry(self, result: Any) -> None:
        outcome = _of(result, "result")
        self._emit(
            "retry",
            host=_of(result, "host").get_name(),
            role=_role(_of(result, "task")),
            task=_title(_of(result, "task")),
            message=message(outcome),
            attempt=outcome.get("attempts"),
            of=outcome.get("retries"),
        )

    def v2_on_file_diff(self, result: Any) -> None:
        outcome = _of(result, "result")
        parts = outcome.get("results") or [outcome]
        text = "".join(self._get_diff(part["diff"]) for part in parts if part.get("diff"))
        if text.strip():
            task = _of(result, "task")
            host = _of(result, "host").get_name()
            self._emit("diff", host=host, role=_role(task), task=_title(task), message=text)

    def v2_playbook_on_stats(self, stats: Any) -> None:
        self._emit("end", failed_hosts=sorted({*stats.failures, *stats.dark}))

    def _result(self, result: Any, status: str, **fields: Any) -> None:
        host, task = _of(result, "host").get_name(), _of(result, "task")
        begun = self._started.pop((host, task._uuid), None)
        self._emit(
            "result",
            host=host,
            role=_role(task),
            task=_title(task),
            action=task.action,
            status=status,
            seconds=None if begun is None else round(time.monotonic() - begun, 3),
            **fields,
        )
        self._stop_if_asked()

    def _stop_if_asked(self) -> None:
        """End between two tasks: while this blocks, Ansible's main process starts no further one."""
        stop = self.get_option("stop_file")
        if not stop or not Path(stop).exists():
            return
        for worker in multiprocessing.active_children():
            worker.join()
        self._emit("stopped")
        raise KeyboardInterrupt


def _role(task: Any) -> str | None:
    """The role that a task belongs to, ours by its short name; None for a task of the play itself."""
    role = getattr(task, "_role", None)
    return str(role.get_name()).removeprefix(OURS) if role else None


def _title(task: Any) -> str:
    """The task's own name, without the role that Ansible puts in front of it."""
    name = str(task.get_name(include_role_fqcn=False)).strip()
    role = getattr(task, "_role", None)
    if role:
        for prefix in (str(role.get_name()), str(role.get_name()).rpartition(".")[2]):
            name = name.removeprefix(f"{prefix} : ")
    return name
