"""The command line that mends what a report shows, as the person called us."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .options import HostOptions


def mend(options: HostOptions) -> Callable[[str, str], str]:
    """(host, role) -> a command to copy. It carries the options that say what the host is meant to be."""
    return lambda host, role: shlex.join(["gpu-provision", "bootstrap", host, *_words(options)])


def resume_command(
    options: HostOptions, command: str = "bootstrap", more: Sequence[str] = ()
) -> Callable[[str], str]:
    """host -> the command that goes on with a run of it. `more` are words of that command's own."""
    return lambda host: shlex.join(["gpu-provision", command, host, "--resume", *more, *_words(options)])


def _words(options: HostOptions) -> list[str]:
    """What a repeated call needs. A descriptor is of one call only: sudo's password is asked for instead."""
    words = []
    if options.inventory:
        words += ["-i", options.inventory]
    if options.vault_password_file:
        words += ["--vault-password-file", options.vault_password_file]
    if options.profile:
        words += ["--profile", options.profile]
    for setting in options.settings:
        words += ["--set", setting]
    if options.ask_become_pass or options.become_password_fd is not None:
        words.append("--ask-become-pass")
    return words
