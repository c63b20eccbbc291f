"""What a role has to make true on the host at hand: the role's planner, asked from a playbook."""

from __future__ import annotations

DOCUMENTATION = """
name: wanted
author: The gpu-provision authors
short_description: What a role of this collection has to make true on a host
description:
  - Runs the role's planner over the host's recording, the role variables and the matching set of versions.
    The controls of the C(gpu-provision) command compare a host with the same planner's answer.
  - Needs the variable C(gpu_provision_recording), which the action C(gpu_provision.host.recording) sets.
  - Takes the matching set from C(gpu_provision_stack) where that is given, and from the lookup
    C(gpu_provision.host.stack) otherwise.
options:
  _terms:
    description: Short name of the role, such as C(nccl).
    required: true
"""

EXAMPLES = """
- name: Look at the host
  gpu_provision.host.recording:

- name: Work out what has to be true
  ansible.builtin.set_fact:
    nccl_wanted: "{{ lookup('gpu_provision.host.wanted', 'nccl') }}"
"""

RETURN = """
_raw:
  description:
    - One dictionary a role, with the files, units, packages and holds wanted, the reasons, and in C(refused)
      why the role must not run here.
  type: list
  elements: dict
"""

import importlib
from typing import Any

from ansible.errors import AnsibleError
from ansible.plugins.loader import lookup_loader
from ansible.plugins.lookup import LookupBase
from ansible_collections.gpu_provision.host.plugins.plugin_utils.playbook_host import profile_of, recording_of
from ansible_collections.gpu_provision.host.provision.catalog.stack import Stack
from ansible_collections.gpu_provision.host.provision.facts import Facts
from ansible_collections.gpu_provision.host.provision.facts.known import Unknown

PLANNERS = "ansible_collections.gpu_provision.host.provision.planners"


class LookupModule(LookupBase):
    def run(
        self, terms: list[str], variables: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[dict[str, Any]]:
        known = variables or {}
        facts = Facts(recording_of(known, self._templar))
        profile = profile_of(known, self._templar)
        stack = self._stack(known)
        return [_planner(role).wanted(facts, profile, stack).as_dict() for role in terms]

    def _stack(self, variables: dict[str, Any]) -> Stack | Unknown:
        given = variables.get("gpu_provision_stack")
        if given is not None:
            document = self._templar.template(given)
        else:
            lookup = lookup_loader.get("gpu_provision.host.stack", loader=self._loader, templar=self._templar)
            document = lookup.run([], variables=variables)[0]
        if "unknown" in document:
            return Unknown(str(document["unknown"]))
        return Stack.from_dict(document)


def _planner(role: str) -> Any:
    try:
        return importlib.import_module(f"{PLANNERS}.{role}")
    except ModuleNotFoundError as e:
        if e.name != f"{PLANNERS}.{role}":
            raise
        raise AnsibleError(f"No role {role!r} of gpu_provision.host has a planner.") from e
