"""Command lines for OpenSSH: the same options for recordings, proofs and Ansible."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .target import Target

CONNECT_SECONDS = 15
ALIVE_SECONDS, ALIVE_COUNT = 5, 6
"""A connection that is dead for half a minute ends; a shorter time would cut hosts under load."""


def options(target: Target) -> list[str]:
    """Options for `ssh` to this host, without the host itself. OpenSSH takes the first value of each key.

    Host keys are strict whatever ssh_config or the target's own options say: a changed key is never taken
    silently.
    """
    settings = [
        f"StrictHostKeyChecking={'accept-new' if _takes_new(target) else 'yes'}",
        *target.options,
        "BatchMode=yes",
        f"ConnectTimeout={CONNECT_SECONDS}",
        f"ServerAliveInterval={ALIVE_SECONDS}",
        f"ServerAliveCountMax={ALIVE_COUNT}",
        "ForwardX11=no",
        "PermitLocalCommand=no",
        "RemoteCommand=none",
        "ClearAllForwardings=yes",
    ]
    arguments = [part for setting in settings for part in ("-o", setting)]
    if target.port is not None:
        arguments += ["-p", str(target.port)]
    if target.identity is not None:
        arguments += ["-i", target.identity, "-o", "IdentitiesOnly=yes"]
    if target.user is not None:
        arguments += ["-l", target.user]
    return arguments


def _takes_new(target: Target) -> bool:
    """Whether a key not seen before may be kept.

    Where an inventory says `StrictHostKeyChecking=no`, that much of it is heeded.
    """
    pairs = (option.partition("=") for option in target.options)
    said = [
        value.strip().lower() for key, _, value in pairs if key.strip().lower() == "stricthostkeychecking"
    ]
    return target.accept_new or said[:1] in (["no"], ["off"], ["accept-new"])


def fresh_args(target: Target) -> list[str]:
    """The command line of a plain ssh on a connection of its own, up to the host; a command may follow.

    No master is used or made.
    """
    return ["ssh", "-o", "ControlPath=none", "-o", "ControlMaster=no", *options(target), *destination(target)]


def destination(target: Target) -> list[str]:
    """The host's part of the command line; after `--` an address that begins with a dash is no option."""
    return ["--", target.address]
