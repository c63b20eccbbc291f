"""Action plugin `gpu_provision.host.recording`: what the host looks like now, as a fact for roles.

It sends the same program that `gpu-provision record` sends, over the task's own connection and with the
task's own `become`, and sets the fact `gpu_provision_recording` (schema gpu-provision/recording/1). It
changes nothing, so it runs in check mode too.
"""

from __future__ import annotations

import shlex
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible_collections.gpu_provision.host.provision.errors import Failure
from ansible_collections.gpu_provision.host.provision.recording.program import program
from ansible_collections.gpu_provision.host.provision.recording.remote import from_output


class ActionModule(ActionBase):
    TRANSFERS_FILES = False
    _supports_check_mode = True
    _supports_async = False
    _VALID_ARGS = frozenset()

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        host = (task_vars or {}).get("inventory_hostname", "unnamed")
        # Ansible's become has decided about rights already: the program must not try sudo on its own.
        sent = program(sudo=False)
        try:
            said = self._low_level_execute_command(
                shlex.join(sent.argv), in_data=sent.stdin, sudoable=True, executable=None
            )
        except NotImplementedError as e:
            raise AnsibleActionFail(f"the connection plugin cannot hand a program its input: {e}") from e
        try:
            recording = from_output(said["stdout"], said["stderr"], sent, host=host)
        except Failure as e:
            raise AnsibleActionFail(f"{e.says}. {e.do}", result={"rc": said.get("rc")}) from e
        result.update(changed=False, ansible_facts={"gpu_provision_recording": recording.as_dict()})
        return result
