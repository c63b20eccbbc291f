"""Lab hosts: booted Debian machines on this machine, to try everything on. Only the lab needs root."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .host import LabHost
from .needs import can_run, could_run
from .place import place

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["LabHost", "can_run", "could_run", "down", "down_all", "find", "hosts", "up"]


def up(
    name: str | None = None,
    *,
    release: str | None = None,
    kind: str | None = None,
    gpus: str | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> LabHost:
    """Makes and boots a host; returns when its sshd answers. A host that is off is booted again as it is.

    `release` is bookworm and `kind` container where none is given; `gpus` is MODEL[:COUNT], several with
    commas, else two A100s.
    `say` is told what takes longer than a moment. Raises Usage where this machine cannot run a lab or the
    call is wrong, Failure where the name is taken or the host does not boot; then nothing of it is left.
    """
    from . import life, needs

    needs.require(kind)
    return life.up(place(), name, release, kind, gpus, say)


def find(name: str) -> LabHost | None:
    """The host of this name that was made to the end, running or off."""
    from .host import load

    host = load(place(), name)
    return host if host and host.whole else None


def hosts() -> list[LabHost]:
    """Every host of the lab, in order of name. Raises Usage for a user who is not root."""
    from .host import all_hosts
    from .needs import require_root

    require_root()
    return all_hosts(place())


def down(name: str) -> None:
    """Takes a host down, with all that is its own. Raises Failure where there is none of this name."""
    from . import life, needs

    needs.require()
    life.down(place(), name)


def down_all() -> None:
    """Takes every host down; leaves no mount, link, bridge, rule or process. Base roots and packages stay."""
    from . import life, needs

    needs.require()
    life.down_all(place())
