"""A time limit for a step on the host: Ansible itself waits for a dead line for hours."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class Hung(BaseException):
    """The host's side did not come back in time. No Exception, which the connection would take as a retry."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise Hung in the body after `seconds`."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def hung(*_: object) -> None:
        raise Hung

    before = signal.signal(signal.SIGALRM, hung)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
