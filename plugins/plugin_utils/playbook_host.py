"""The host at hand as a lookup sees it: its recording and its profile, out of the play's variables."""

from __future__ import annotations

from typing import Any

from ansible.errors import AnsibleError
from ansible_collections.gpu_provision.host.provision.errors import Failure
from ansible_collections.gpu_provision.host.provision.profile import administrators
from ansible_collections.gpu_provision.host.provision.profile.declared import declared
from ansible_collections.gpu_provision.host.provision.profile.model import Profile
from ansible_collections.gpu_provision.host.provision.profile.peers import with_peers
from ansible_collections.gpu_provision.host.provision.recording.model import Recording, RecordingError


def recording_of(variables: dict[str, Any], templar: Any) -> Recording:
    """The recording that the action `recording` set. Raises AnsibleError where there is none."""
    facts = variables.get("ansible_facts") or {}
    raw = variables.get("gpu_provision_recording", facts.get("gpu_provision_recording"))
    if raw is None:
        raise AnsibleError(
            "There is no recording of this host yet: run the task `gpu_provision.host.recording:` first."
        )
    try:
        return Recording.from_dict(templar.template(raw))
    except RecordingError as e:
        raise AnsibleError(f"gpu_provision_recording is no recording: {e}") from e


def profile_of(variables: dict[str, Any], templar: Any) -> Profile:
    """The declared variables as this host has them; a role that is not in the play keeps its defaults.

    Raises AnsibleError where a key of an administrator is none, or its file cannot be read.
    """
    chosen = {name: templar.template(variables[name]) for name in declared() if name in variables}
    if chosen.get(administrators.VARIABLE):
        try:
            chosen[administrators.VARIABLE] = administrators.expanded(chosen[administrators.VARIABLE])
        except ValueError as e:
            raise AnsibleError(f"{administrators.VARIABLE}: {e}") from e
    defaults = {name: variable.default for name, variable in declared().items()}
    try:
        return with_peers(Profile("playbook", {**defaults, **chosen}, chosen), _Inventory(variables))
    except Failure as e:
        raise AnsibleError(str(e)) from e


class _Inventory:
    """The play's inventory, as a host's variables show it."""

    def __init__(self, variables: dict[str, Any]) -> None:
        self._groups, self._hosts = variables.get("groups") or {}, variables.get("hostvars") or {}

    def names(self) -> tuple[str, ...]:
        return (*self._groups, *self._hosts)

    def members(self, name: str) -> tuple[tuple[str, Any], ...] | None:
        listed = self._groups.get(name, [name] if name in self._hosts else None)
        return None if listed is None else tuple((host, self._hosts[host]) for host in listed)
