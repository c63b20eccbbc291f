"""The kinds of lab host: each is a module that knows how such a host is laid, started and cleared away."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .host import LabHost
    from .place import Place

DEFAULT = "container"


class Kind(Protocol):
    """What the rest of the lab asks of a kind. Settings, keys and double are put in by `machine`."""

    BOOT_LIMIT: float
    """Seconds until the sshd of a host that boots must answer."""
    INTERFACE: str
    """Name of the host's network interface."""
    RAISED: str
    """The word of interfaces(5) by which it comes up: `auto`, or `allow-hotplug` where udev announces it."""

    def base(self, place: Place, release: str, say: Callable[[str], None]) -> Path:
        """What new hosts of a release are made from, built first where it is not there in today's recipe."""

    def lay(self, host: LabHost) -> None:
        """Makes a new host's file system and shows it at `host.root`."""

    def double(self, host: LabHost) -> Path:
        """The folder that the host sees as /var/lib/gpu-double, as it is seen from here before it boots."""

    def start(self, host: LabHost) -> None:
        """Boots the host in its own cgroup, by a process that outlives this one."""

    def clear(self, host: LabHost) -> None:
        """Takes mounts, links and sockets of a host away of which no process is left."""

    def leave(self, host: LabHost) -> None:
        """Keeps what other hosts may use, before the host's files go."""


def of(name: str) -> Kind:
    """The kind of this name."""
    from . import container
    from .vm import machine as vm

    kinds: dict[str, Kind] = {"container": container, "vm": vm}
    return kinds[name]
