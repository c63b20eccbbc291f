"""The settings of /etc/nccl.conf once more, for `docker run --env-file` and systemd's `EnvironmentFile=`.

A container does not see the host's /etc/nccl.conf, and a program that brings its own NCCL in a container
needs the same settings. Docker takes a value as it stands, systemd reads quotes and backslashes
(docker's docs of --env-file; systemd.exec(5)): a value that both read alike is written, others are left out.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

PATH = "/etc/gpu-provision/nccl.env"
_HEAD = """\
# Written by gpu-provision (role nccl): what /etc/nccl.conf says, for containers and units.
# docker run --env-file /etc/gpu-provision/nccl.env …, or EnvironmentFile=/etc/gpu-provision/nccl.env
"""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_UNLIKE = re.compile(r"""["'\\]|^\s|\s$""")


def render(settings: Mapping[str, str]) -> str:
    """The file's text from what NCCL gets from /etc/nccl.conf."""
    lines = []
    for name, value in sorted(settings.items()):
        if not _NAME.fullmatch(name):
            continue
        if _UNLIKE.search(value):
            lines.append(f"# {name} is left out: docker and systemd would read its value differently")
        else:
            lines.append(f"{name}={value}")
    if "NCCL_TOPO_FILE" in settings:
        lines.append(
            f"# A container needs the topology file too: -v {settings['NCCL_TOPO_FILE']}:"
            f"{settings['NCCL_TOPO_FILE']}:ro"
        )
    return _HEAD + "".join(f"{line}\n" for line in lines)
