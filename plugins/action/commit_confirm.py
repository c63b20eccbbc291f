"""Change what could cut the line, prove from the controller that one still gets in, and only then keep it."""

from __future__ import annotations

import secrets
import time
from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleConnectionFailure, AnsibleError
from ansible.plugins.action import ActionBase
from ansible_collections.gpu_provision.host.plugins.module_utils.commit_confirm.arguments import (
    ACTION,
    CHANGE,
)
from ansible_collections.gpu_provision.host.plugins.plugin_utils.confirm_words import (
    diff,
    failed,
    holder,
    message,
    refused,
)
from ansible_collections.gpu_provision.host.plugins.plugin_utils.limited import Hung, limited
from ansible_collections.gpu_provision.host.plugins.plugin_utils.way_in import way_in
from ansible_collections.gpu_provision.host.provision.access import fresh, proofs
from ansible_collections.gpu_provision.host.provision.planners import confirm_seconds

if TYPE_CHECKING:
    from ansible_collections.gpu_provision.host.provision.access.door import Door

HOST_SIDE = "gpu_provision.host.commit_confirm"
# A step on the host may take this much longer than the host waits for the confirmation, seconds.
SLACK = 120
# What the host needs to put things back once its timer fires, reloads included, seconds.
PUTTING_BACK = 120
REVERTING = 240


class ActionModule(ActionBase):
    """See the module commit_confirm for the arguments; they are the same."""

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        self._task_vars = task_vars or {}
        _, args = self.validate_argument_spec(argument_spec=ACTION)
        if args["seconds"] is None:
            args["seconds"] = confirm_seconds.SECONDS
        if too := confirm_seconds.refusal(args["seconds"]):
            raise AnsibleError(f"seconds: {too}")
        for several in ("files", "loaded"):
            args[several] = [{k: v for k, v in each.items() if v is not None} for each in args[several]]
        operation = {
            "change": self._change,
            "arm": self._arm,
            "confirm": self._confirm,
            "status": self._status,
            "revert": self._revert,
        }[args["operation"]]
        return result | operation(args)

    def _status(self, args: dict[str, Any]) -> dict[str, Any]:
        return self._step("status", {"id": args["id"]}, limit=SLACK)

    def _revert(self, args: dict[str, Any]) -> dict[str, Any]:
        if self._task.check_mode:
            now = self._status(args)
            return now | {"changed": now.get("state") == "armed"}
        return self._step("revert", {"id": args["id"]}, limit=REVERTING)

    def _change(self, args: dict[str, Any]) -> dict[str, Any]:
        planned = self._step("plan", {"files": args["files"]}, limit=SLACK)
        if planned.get("failed"):
            return planned
        differences = planned["differences"]
        told: dict[str, Any] = {"state": "untouched", "changed": bool(differences)}
        told["diff"] = [diff(d) for d in differences]
        if not differences or self._task.check_mode:
            return told
        shown: list[str] = []
        door = self._before(args, shown)
        if not isinstance(door, dict):
            done = self._commit(args, door, shown)
            return told | done | {"proofs": shown, "changed": done["state"] not in ("untouched", "reverted")}
        return door

    def _arm(self, args: dict[str, Any]) -> dict[str, Any]:
        """Keep the old state and start the timer; what is changed then is other tasks' affair."""
        for theirs in ("files", "load"):
            if args[theirs]:
                raise AnsibleError(f"{theirs}: operation arm changes nothing itself; name the files in paths")
        if self._task.check_mode:
            return {"changed": True, "state": "untouched"}
        shown: list[str] = []
        door = self._before(args, shown)
        if isinstance(door, dict):
            return door
        request = self._request(args)
        told = {"id": request["id"], "proofs": shown}
        armed = self._step("arm", request, limit=SLACK)
        if armed.get("state") != "armed":
            return told | failed(armed.get("state", "armed"), message(armed))
        return told | {"state": "armed", "changed": True, "remaining": armed["remaining"]}

    def _confirm(self, args: dict[str, Any]) -> dict[str, Any]:
        """Prove that one gets in, and keep what an earlier `arm` was about; put it back where that fails."""
        now = self._status(args)
        if now.get("failed"):
            return now
        if self._task.check_mode:
            return {"changed": now["armed"] is not None, "state": "untouched"}
        armed = now["armed"]
        if armed is None or (args["id"] and armed["id"] != args["id"]):
            state = now["state_of"] if args["id"] else "untouched"
            return failed(state, "nothing waits for this confirmation")
        door = way_in(self._connection, self._task.delegate_to)
        if isinstance(door, str):
            return refused(door) | {"state": "armed"}
        shown: list[str] = []
        end = time.monotonic() + armed["remaining"]
        try:
            done = self._keep(args, armed["id"], door, shown, end)
        except AnsibleConnectionFailure as e:
            done = self._lost(door, armed["id"], end, str(e))
        return {"changed": done["state"] == "done", **done, "id": armed["id"], "proofs": shown}

    def _before(self, args: dict[str, Any], shown: list[str]) -> Door | dict[str, Any]:
        """The way in, once it is proven to work by key alone before any change; or why nothing may change."""
        door = way_in(self._connection, self._task.delegate_to)
        if isinstance(door, str):
            return refused(door)
        before = fresh.login(door)
        shown.append(f"before: {before.says}")
        if not before.holds:
            return refused(
                f"a fresh login with a key alone does not work, so it stays as it is: {before.says}"
            )
        if args["prove"]["administrator"] and before.uid in (None, 0):
            return refused("this run logs in as root; log in as another administrator to close root's login")
        return door

    def _request(self, args: dict[str, Any]) -> dict[str, Any]:
        ours = {"id": secrets.token_hex(4), "holder": holder(), "seconds": args["seconds"]}
        return {k: args[k] for k in CHANGE} | ours

    def _commit(self, args: dict[str, Any], door: Door, shown: list[str]) -> dict[str, Any]:
        request = self._request(args)
        transaction = request["id"]
        end = time.monotonic() + args["seconds"]
        told = {"id": transaction}
        try:
            applied = self._step("apply", request, limit=args["seconds"] + SLACK)
            if applied.get("state") != "armed":
                if "state" not in applied:
                    return told | self._lost(door, transaction, end + SLACK, message(applied))
                return told | failed(applied["state"], message(applied))
            # Sending the host's side there took its time; the host's own clock began later.
            end = time.monotonic() + applied["remaining"]
            return told | self._keep(args, transaction, door, shown, end)
        except AnsibleConnectionFailure as e:
            return told | self._lost(door, transaction, end, str(e))

    def _keep(
        self, args: dict[str, Any], transaction: str, door: Door, shown: list[str], end: float
    ) -> dict[str, Any]:
        """Prove, then confirm, or put back at once. Raises AnsibleConnectionFailure when the line is lost."""
        wrong = proofs.after(door, shown, end, password_refused=args["prove"]["password_refused"])
        if wrong:
            reverted = self._step("revert", {"id": transaction}, limit=REVERTING)
            state = reverted.get("state", "armed")
            if state == "armed":
                return self._lost(door, transaction, end, wrong)
            return failed(state, wrong + proofs.put_back(door, shown))
        confirmed = self._step("confirm", {"id": transaction}, limit=SLACK)
        state = confirmed.get("state")
        if state is None:
            return self._lost(door, transaction, end, message(confirmed))
        if state != "done":
            return failed(state, "the confirmation came after the host's timer")
        return {"state": "done"}

    def _lost(self, door: Door, transaction: str, end: float, why: str) -> dict[str, Any]:
        """The line is gone. Wait until the host has put itself back, then go and see what is true."""
        while True:
            if fresh.login(door, timeout=20).holds:
                told = self._look(transaction)
                if told not in ("armed", "reverting"):
                    return failed(told, why)
            if time.monotonic() > end + PUTTING_BACK:
                return failed("armed", f"{why}, and nobody could look how it ended")
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
            with limited(limit):
                answer: dict[str, Any] = self._execute_module(
                    module_name=HOST_SIDE,
                    module_args={"step": step, **arguments},
                    task_vars=self._task_vars,
                )
        except Hung:
            raise AnsibleConnectionFailure(f"the host did not answer within {limit:.0f} s") from None
        return {k: v for k, v in answer.items() if k != "invocation"}
