"""What Ansible is told of one host: which roles, which variables, how to get there."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from ..transport.target import Target


@dataclass(frozen=True)
class HostVars:
    """One host of a converge.

    `roles` are short names, run in the order of playbooks/site.yml whatever their order here.
    `variables` are final values: text that looks like a template stays as it is. `secrets` are
    variables too (a become password, vaulted values); they never enter the run directory. `target`
    is where a lost connection is explained from.
    """

    name: str
    roles: tuple[str, ...]
    variables: Mapping[str, Any]
    secrets: Mapping[str, Any] = field(default_factory=dict, repr=False)
    target: Target | None = None


def connection(
    target: Target,
    *,
    python: str,
    login_is_root: bool = False,
    control_path: Path | None = None,
    options: Sequence[str] = (),
) -> dict[str, Any]:
    """The `ansible_*` variables that lead Ansible to `target` the way the rest of the run goes there.

    `python` is the interpreter's path on the host. `options` are OpenSSH's arguments for the target
    (transport.ssh.options). With `control_path`, the session that the run holds open there is used;
    ControlMaster=no, because a master that Ansible opened itself would outlive the run.
    """
    variables: dict[str, Any] = {"ansible_python_interpreter": python}
    if login_is_root:
        variables["ansible_become"] = False
    if target.local:
        return variables | {"ansible_connection": "local"}
    shared = ["-o", "ControlMaster=no", "-o", f"ControlPath={control_path or 'none'}"]
    variables |= {
        "ansible_connection": "ssh",
        "ansible_host": target.address,
        "ansible_ssh_args": shlex.join(shared),
        "ansible_ssh_common_args": shlex.join(options),
    }
    if target.user:
        variables["ansible_user"] = target.user
    if target.port:
        variables["ansible_port"] = target.port
    if target.identity:
        variables["ansible_ssh_private_key_file"] = target.identity
    return variables


def with_become_password(host: HostVars, password: str | None) -> HostVars:
    """`host` with sudo's password among its secrets; unchanged without one."""
    if password is None:
        return host
    return replace(host, secrets={**host.secrets, "ansible_become_password": password})
