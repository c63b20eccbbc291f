"""Starting the process that keeps a lab host running."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from . import cgroups
from .shell import plain_environment

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .host import LabHost

SUPERVISOR = Path(__file__).with_name("supervisor.sh")


def start(host: LabHost, command: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
    """Runs a command in the host's cgroup, its output in its console file. It outlives this process."""
    procs = " ".join(str(path) for path in cgroups.make(host.cgroup))
    with host.console.open("ab") as console:
        subprocess.Popen(
            ["sh", str(SUPERVISOR), procs, *command],
            stdin=subprocess.DEVNULL,
            stdout=console,
            stderr=console,
            cwd="/",
            env={**plain_environment(), **(environment or {})},
            start_new_session=True,
        )
