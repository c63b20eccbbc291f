"""Change what could cut the line, prove from the controller that one still gets in, and only then keep it."""

from __future__ import annotations

import getpass
import os
import secrets
import shlex
import signal
import socket
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleConnectionFailure, AnsibleError
from ansible.plugins.action import ActionBase
from ansible_collections.gpu_provision.host.provision.access import fresh, proofs
from ansible_collections.gpu_provision.host.provision.access.door import Door

if TYPE_CHECKING:
    from collections.abc import Iterator

HOST_SIDE = "gpu_provision.host.commit_confirm"
SECONDS = 180
# A step on the host may take this much longer than the host waits for the confirmation, seconds.
SLACK = 120
# What the host needs to put things back once its timer fires, reloads included, seconds.
PUTTING_BACK = 60


class _Hung(BaseException):
    """The host's side did not come back in time. No Exception, which the connection would take as a retry."""


class ActionModule(ActionBase):
    """See the module commit_confirm for the arguments; they are the same."""

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        self._task_vars = task_vars or {}
        _, args = self.validate_argument_spec(argument_spec=ARGUMENTS)
        operation = args["operation"]
        if operation == "status":
            return result | self._step("status", {}, limit=SLACK)
        if operation == "revert":
            if self._task.check_mode:
                now = self._step("status", {}, limit=SLACK)
                return result | now | {"changed": now.get("state") == "armed"}
            return result | self._step("revert", {}, limit=240)
        return result | self._change(args)

    def _change(self, args: dict[str, Any]) -> dict[str, Any]:
        if args["seconds"] is None:
            given = self._templar.template(self._task_vars.get("gpu_provision_confirm_seconds", SECONDS))
            args["seconds"] = int(given)
        if not 5 <= args["seconds"] <= 3600:
            raise AnsibleError("seconds is from 5 to 3600")
        args["files"] = [{k: v for k, v in file.items() if v is not None} for file in args["files"]]
        planned = self._step("plan", {"files": args["files"]}, limit=SLACK)
        if planned.get("failed"):
            return planned
        differences = planned["differences"]
        told: dict[str, Any] = {"state": "untouched", "changed": bool(differences)}
        told["diff"] = [_diff(d) for d in differences]
        if not differences or self._task.check_mode:
            return told
        door = self._door()
        if isinstance(door, str):
            return _refused(door)
        shown: list[str] = []
        before = fresh.login(door)
        shown.append(f"before: {before.says}")
        if not before.holds:
            return _refused(
                f"a fresh login with a key alone does not work, so it stays as it is: {before.says}"
            )
        if args["prove"]["administrator"] and before.uid in (None, 0):
            return _refused("this run logs in as root; log in as another administrator to close root's login")
        done = self._commit(args, door, shown)
        told.update(done, proofs=shown, changed=done["state"] not in ("untouched", "reverted"))
        return told

    def _commit(self, args: dict[str, Any], door: Door, shown: list[str]) -> dict[str, Any]:
        transaction = secrets.token_hex(4)
        request = {k: args[k] for k in ("name", "seconds", "files", "paths", "units", "validate", "reload")}
        request |= {"id": transaction, "holder": _holder()}
        end = time.monotonic() + args["seconds"]
        told = {"id": transaction}
        try:
            applied = self._step("apply", request, limit=args["seconds"] + SLACK)
            if applied.get("state") != "armed":
                if "state" not in applied:
                    return told | self._lost(door, transaction, end + SLACK, _message(applied))
                return told | _failed(applied["state"], _message(applied))
            # Sending the host's side there took its time; the host's own clock began later.
            end = time.monotonic() + applied["remaining"]
            wrong = proofs.after(door, shown, end, password_refused=args["prove"]["password_refused"])
            if wrong:
                reverted = self._step("revert", {"id": transaction}, limit=240)
                state = reverted.get("state", "armed")
                if state == "armed":
                    return told | self._lost(door, transaction, end, wrong)
                return told | _failed(state, wrong + proofs.put_back(door, shown))
            confirmed = self._step("confirm", {"id": transaction}, limit=SLACK)
        except AnsibleConnectionFailure as e:
            return told | self._lost(door, transaction, end, str(e))
        state = confirmed.get("state")
        if state is None:
            return told | self._lost(door, transaction, end, _message(confirmed))
        if state != "done":
            return told | _failed(state, "the confirmation came after the host's timer")
        return told | {"state": "done"}

    def _lost(self, door: Door, transaction: str, end: float, why: str) -> dict[str, Any]:
        """The line is gone. Wait until the host has put itself back, then go and see what is true."""
        while True:
            if fresh.login(door, timeout=20).holds:
                told = self._look(transaction)
                if told not in ("armed", "reverting"):
                    return _failed(told, why)
            if time.monotonic() > end + PUTTING_BACK:
                return _failed("armed", f"{why}, and nobody could look how it ended")
            time.sleep(2)

    def _look(self, transaction: str) -> str:
        """The state of one transaction, asked over a new connection; `armed` where nothing answers."""
        alive = "-o ServerAliveInterval=5 -o ServerAliveCountMax=3"
        options = f"-o ControlMaster=no -o ControlPath=none {alive}"
        before = self._connection.get_option("ssh_args")
        self._connection.set_option("ssh_args", options)
        try:
            told = self._step("status", {"id": transaction}, limit=SLACK)
        except AnsibleConnectionFailure:
            return "armed"
        finally:
            self._connection.set_option("ssh_args", before)
        return str(told.get("state_of", "armed"))

    def _step(self, step: str, arguments: dict[str, Any], *, limit: float) -> dict[str, Any]:
        """One step of the host's side. Raises AnsibleConnectionFailure when it takes longer than `limit`."""
        try:
            with _limited(limit):
                answer: dict[str, Any] = self._execute_module(
                    module_name=HOST_SIDE,
                    module_args={"step": step, **arguments},
                    task_vars=self._task_vars,
                )
        except _Hung:
            raise AnsibleConnectionFailure(f"the host did not answer within {limit:.0f} s") from None
        return {k: v for k, v in answer.items() if k != "invocation"}

    def _door(self) -> Door | str:
        """The way Ansible goes to this host, for plain OpenSSH; or why there is none."""
        if self._connection.transport == "local" or self._task.delegate_to == "localhost":
            return "on the machine that we run on nobody can prove from outside that one still gets in"
        if self._connection.transport != "ssh":
            return (
                f"the proof is made with OpenSSH, and this play connects with {self._connection.transport!r}"
            )
        option = self._connection.get_option
        words = shlex.split(option("ssh_args") or "")
        if option("host_key_checking") is False:
            words += ["-o", "StrictHostKeyChecking=no"]
        for name, value in (("Port", option("port")), ("User", option("remote_user"))):
            words += ["-o", f"{name}={value}"] if value else []
        if option("private_key_file"):
            words += ["-o", f'IdentityFile="{Path(option("private_key_file")).expanduser()}"']
        words += ["-o", f"ConnectTimeout={option('timeout')}"]
        for name in ("ssh_common_args", "ssh_extra_args"):
            words += shlex.split(option(name) or "")
        return Door(option("host"), tuple(words), option("ssh_executable"))


def _failed(state: str, why: str) -> dict[str, Any]:
    """The truth about a change that did not come about, and why it did not."""
    words = {
        "untouched": "the host is untouched",
        "reverted": "the host is as it was before",
        "done": "the change is confirmed and in place",
        "reverting": "not everything could be put back yet; the host tries again at its next boot",
        "armed": "unless it was confirmed, the host has put itself back",
    }
    return {
        "failed": True,
        "changed": state in ("done", "reverting"),
        "state": state,
        "msg": f"{why}: {words[state]}",
    }


def _refused(why: str) -> dict[str, Any]:
    return {"failed": True, "changed": False, "msg": f"refused: {why}", "state": "untouched"}


def _message(answer: dict[str, Any]) -> str:
    return str(answer.get("msg") or answer.get("module_stderr") or "the host's side ended without an answer")


def _holder() -> str:
    return f"{getpass.getuser()}@{socket.gethostname()} (process {os.getppid()})"


def _diff(difference: dict[str, Any]) -> dict[str, Any]:
    def header(mode: str | None) -> str:
        return f"{difference['path']} ({'mode ' + mode if mode else 'absent'})"

    return {
        "before_header": header(difference["mode_before"]),
        "after_header": header(difference["mode"]),
        "before": difference["before"] or "",
        "after": difference["after"] or "",
    }


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """Raise _Hung in the body after `seconds`; Ansible itself waits for a dead line for hours."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def hung(*_: object) -> None:
        raise _Hung

    before = signal.signal(signal.SIGALRM, hung)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


_STRINGS = {"type": "list", "elements": "str", "default": []}
ARGUMENTS: dict[str, Any] = {
    "operation": {"choices": ["change", "status", "revert"], "default": "change"},
    "name": {"default": ""},
    "files": {
        "type": "list",
        "elements": "dict",
        "default": [],
        "options": {
            "path": {"type": "path", "required": True},
            "text": {},
            "first_line": {},
            "mode": {},
            "owner": {},
        },
        "mutually_exclusive": [("text", "first_line")],
    },
    "paths": _STRINGS,
    "units": _STRINGS,
    "validate": {
        "type": "list",
        "elements": "dict",
        "default": [],
        "options": {"command": {"required": True}, "lines": _STRINGS},
    },
    "reload": _STRINGS,
    "prove": {
        "type": "dict",
        "default": {},
        "apply_defaults": True,
        "options": {
            "password_refused": {"type": "bool", "default": False},
            "administrator": {"type": "bool", "default": False},
        },
    },
    "seconds": {"type": "int"},
}
