"""Action plugin `gpu_provision.host.administrator_login`; the module of that name documents it."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase
from ansible_collections.gpu_provision.host.plugins.plugin_utils.way_in import way_in
from ansible_collections.gpu_provision.host.provision.access import administrators

NOT_AT_HAND = "not proven: no private key of this account can be used on this machine"


class ActionModule(ActionBase):
    """Tries each administrator by the way that Ansible itself goes to the host."""

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        _, args = self.validate_argument_spec(argument_spec=ARGUMENTS)
        result["changed"] = False
        if self._task.check_mode:
            return result | {"skipped": True, "msg": "accounts are tried once they are made"}
        door = way_in(self._connection, self._task.delegate_to)
        if isinstance(door, str):
            return result | {"failed": True, "msg": f"refused: {door}"}
        proofs, wrong = {}, []
        for each in args["administrators"]:
            proof = administrators.prove(door, each["name"], each["keys"], sudo=each["sudo"])
            proofs[each["name"]] = proof.says if proof else NOT_AT_HAND
            if proof and not proof.holds:
                wrong.append(f"{each['name']} does not get in as an administrator: {proof.says}")
        result["proofs"] = proofs
        return result | ({"failed": True, "msg": "; ".join(wrong)} if wrong else {})


ARGUMENTS: dict[str, Any] = {
    "administrators": {
        "type": "list",
        "elements": "dict",
        "required": True,
        "options": {
            "name": {"required": True},
            "keys": {"type": "list", "elements": "str", "required": True, "no_log": False},
            "sudo": {"type": "bool", "default": True},
        },
    }
}
