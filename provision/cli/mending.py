"""The command line that mends what a report shows, as the person called us."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from .options import HostOptions


def mend(options: HostOptions) -> Callable[[str, str], str]:
    """(host, role) -> a command to copy. It carries the options that say what the host is meant to be."""
    words = []
    if options.inventory:
        words += ["-i", options.inventory]
    if options.profile:
        words += ["--profile", options.profile]
    for setting in options.settings:
        words += ["--set", setting]
    tail = f" {shlex.join(words)}" if words else ""
    return lambda host, role: f"gpu-provision bootstrap {shlex.quote(host)}{tail}"
