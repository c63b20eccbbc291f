"""The matching set of driver, CUDA, cuDNN and NCCL for the host at hand, asked from a playbook."""

from __future__ import annotations

DOCUMENTATION = """
name: stack
author: The gpu-provision authors
short_description: The matching set of driver, CUDA, cuDNN and NCCL for a host
description:
  - Gives the document C(gpu-provision/stack/1) that the command C(gpu-provision resolve --json) prints.
  - Returns the variable C(gpu_provision_stack) where it is given, as the command gives it to each host.
    Otherwise resolves the set from C(gpu_provision_recording), which the action
    C(gpu_provision.host.recording) sets, and from the role variables of the host.
  - Where the set cannot be told (no GPU on the bus, a device that the catalog does not know), the document
    has the only key C(unknown), with the reason.
options:
  _terms:
    description: None are taken.
"""

EXAMPLES = """
- name: Look at the host
  gpu_provision.host.recording:

- name: Show the driver that fits it
  ansible.builtin.debug:
    msg: "{{ lookup('gpu_provision.host.stack').driver.packages }}"
"""

RETURN = """
_raw:
  description: One document.
  type: list
  elements: dict
"""

from datetime import date
from typing import Any

from ansible.errors import AnsibleError
from ansible.plugins.lookup import LookupBase
from ansible_collections.gpu_provision.host.plugins.plugin_utils.playbook_host import profile_of, recording_of
from ansible_collections.gpu_provision.host.provision.catalog.host import stack_for
from ansible_collections.gpu_provision.host.provision.errors import Failure
from ansible_collections.gpu_provision.host.provision.facts import Facts
from ansible_collections.gpu_provision.host.provision.facts.known import Unknown


class LookupModule(LookupBase):
    def run(
        self, terms: list[str], variables: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[dict[str, Any]]:
        if terms:
            raise AnsibleError(
                "The lookup gpu_provision.host.stack takes no terms: it answers for the host at hand."
            )
        known = variables or {}
        given = known.get("gpu_provision_stack")
        if given is not None:
            return [self._templar.template(given)]
        try:
            stack = stack_for(
                Facts(recording_of(known, self._templar)), profile_of(known, self._templar), date.today()
            )
        except Failure as e:
            raise AnsibleError(str(e)) from e
        return [{"unknown": stack.reason} if isinstance(stack, Unknown) else stack.as_dict()]
