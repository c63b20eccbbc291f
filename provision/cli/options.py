"""The options of every command with HOST, gathered into one value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from typing import Any, TypeVar

import click

from provision.errors import Interrupted

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class HostOptions:
    """What the user said about reaching hosts and about what they are meant to be."""

    inventory: str | None
    profile: str | None
    settings: tuple[str, ...]
    accept_new: bool
    host_key: str | None
    forks: int
    password_fd: int | None
    become_password_fd: int | None
    ask_become_pass: bool
    vault_password_file: str | None


_OPTIONS = (
    click.option("-i", "--inventory", metavar="INVENTORY", help="Ansible inventory: file or directory."),
    click.option(
        "--profile",
        metavar="NAME|FILE",
        help="A preset (dev research inference rendering training), or a YAML file of variables.",
    ),
    click.option(
        "--set",
        "settings",
        metavar="VARIABLE=VALUE",
        multiple=True,
        help="Set a variable; a YAML value, or @FILE. Repeatable.",
    ),
    click.option("--accept-new", is_flag=True, help="Accept and remember the key of a host not seen before."),
    click.option(
        "--host-key", metavar="FINGERPRINT", help="The SHA256:… fingerprint that the host's key must have."
    ),
    click.option("--forks", type=click.IntRange(1), default=20, show_default=True, help="Hosts at once."),
    click.option(
        "--password-fd",
        type=click.IntRange(0),
        metavar="N",
        help="Read the login's password from this descriptor, for where no key gets in; bootstrap leaves "
        "your key there. On a terminal it is asked for.",
    ),
    click.option(
        "--become-password-fd",
        type=click.IntRange(0),
        metavar="N",
        help="Read sudo's password from this file descriptor.",
    ),
    click.option("--ask-become-pass", is_flag=True, help="Ask for sudo's password."),
    click.option(
        "--vault-password-file", type=click.Path(), metavar="FILE", help="Password of Ansible vault files."
    ),
)


def host_options(command: F) -> F:
    """Add the options; the command receives them as one argument `options: HostOptions`."""

    @wraps(command)
    def gathered(**arguments: Any) -> Any:
        own = {f.name: arguments.pop(f.name, None) for f in fields(HostOptions)}
        try:
            return command(options=HostOptions(**own), **arguments)
        except (KeyboardInterrupt, click.Abort) as e:
            # A command that changes hosts tells of them itself once it has begun.
            raise Interrupted("interrupted; no host was changed") from e

    decorated: Any = gathered
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    result: F = decorated
    return result
