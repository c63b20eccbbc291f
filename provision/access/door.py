"""How plain OpenSSH gets to a host: the program, its options and the destination."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..transport.options import options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..transport.target import Target

# OpenSSH takes the first value it sees of an option, so these stand before the user's own:
# no shared connection, no question, and no change of the user's choice of keys, proxies and known hosts.
FRESH = ("ControlMaster=no", "ControlPath=none", "BatchMode=yes", "ForwardAgent=no", "RequestTTY=no")
# ... and these after them: they hold only where the user says nothing. A dead line is noticed in 15 s.
LAST = ("ConnectTimeout=15", "ServerAliveInterval=5", "ServerAliveCountMax=3")


@dataclass(frozen=True)
class Door:
    """A way to a host. `options` are OpenSSH's own arguments, as a user would give them."""

    destination: str
    options: tuple[str, ...] = ()
    ssh: str = "ssh"

    def argv(self, command: str, *first: str, last: Sequence[str] = ()) -> list[str]:
        """The argument vector that runs `command` on a fresh connection; `first` beats the user's options."""
        ours = [word for option in (*FRESH, *first) for word in ("-o", option)]
        rest = [word for option in (*LAST, *last) for word in ("-o", option)]
        return [self.ssh, *ours, *self.options, *rest, "--", self.destination, command]

    def as_user(self, user: str) -> Door:
        """The same way in for another account."""
        return replace(self, options=("-o", f"User={user}", *self.options))


def door_to(target: Target) -> Door:
    """The way that recordings and Ansible go to a host, for plain OpenSSH."""
    return Door(target.address, tuple(options(target)))
