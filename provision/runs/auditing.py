"""Audit: every host recorded and judged side by side; nothing on a host is changed."""

from __future__ import annotations

from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING

from provision.errors import Failure

from .fleet import Fleet

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from provision.report.model import Judgement

    from .fleet import Line
    from .managed import Managed


def audit(
    hosts: Sequence[Managed], *, forks: int = 20, ask: Callable[[str], bool] | None = None
) -> tuple[Judgement, ...]:
    """One judgement a host, in the order given; a host that could not be reached says why.

    Of a host only its judgement is kept: the recordings of a whole fleet would fill the memory.
    """
    with Fleet(hosts, forks, once=True, by_password=True) as fleet:
        Thread(target=_prepare).start()
        judged = fleet.reach(_judged, ask)
    return tuple(_unreached(name, of) if isinstance(of, Failure) else of for name, of in judged.items())


def _prepare() -> None:
    """Load what judging needs while the connections are made, which takes about as long."""
    from . import look

    with suppress(Failure):  # a broken catalog of the site: each host's own judging says so
        look.prepare()


def _judged(line: Line) -> Judgement:
    from .look import look

    return look(line).judgement


def _unreached(name: str, failure: Failure) -> Judgement:
    from provision.report.model import Judgement

    return Judgement(name, unreached=failure.reason, unreached_code=failure.exit_code)
