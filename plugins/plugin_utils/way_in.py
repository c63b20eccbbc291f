"""The way that Ansible goes to a host, for plain OpenSSH: what a proof from outside is made with."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from ansible_collections.gpu_provision.host.provision.access.door import Door


def way_in(connection: Any, delegate_to: str | None) -> Door | str:
    """The door of a task's connection; or why there is none."""
    if connection.transport == "local" or delegate_to == "localhost":
        return "on the machine that we run on nobody can prove from outside that one still gets in"
    if connection.transport != "ssh":
        return f"the proof is made with OpenSSH, and this play connects with {connection.transport!r}"
    option = connection.get_option
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
