"""The order of proofs around a change that could cut the line, and what each failure means.

`shown` collects what every fresh connection showed, in words for the report.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from . import fresh

if TYPE_CHECKING:
    from collections.abc import Callable

    from .door import Door

# How long a reloading daemon may take to listen again, seconds.
LISTENS_AGAIN = 10


def after(door: Door, shown: list[str], end: float, *, password_refused: bool) -> str | None:
    """What is wrong with the new state as seen from outside; None where all proofs hold."""
    login = answer(lambda seconds: fresh.login(door, timeout=seconds), end)
    shown.append(f"after: {login.says}")
    if not login.holds:
        return f"after the change a fresh login does not work: {login.says}"
    if password_refused:
        refused = answer(lambda seconds: fresh.password_refused(door, timeout=seconds), end)
        shown.append(f"after: {refused.says}")
        if not refused.holds:
            return f"after the change a password is not proven to be refused: {refused.says}"
    return None


def put_back(door: Door, shown: list[str]) -> str:
    """What to add about the old state, once it is back: whether it lets us in, and what that shows."""
    unknown_key = any("Host key verification failed" in said for said in shown)
    again = answer(
        lambda limit: fresh.login(door, timeout=limit, learn_keys=unknown_key),
        time.monotonic() + LISTENS_AGAIN,
    )
    shown.append(f"put back: {again.says}")
    if not again.holds:
        return (
            f"; and with the old files a fresh login does not work either ({again.says}): somebody changed "
            "them before and did not reload. Keep every open session, and mend them from there"
        )
    if unknown_key:
        return (
            "; the host would have shown a key of another kind than the one in known_hosts. Its other keys "
            "were learned over the known one just now, so run this again"
        )
    return ""


def answer(proof: Callable[[float], fresh.Proof], end: float) -> fresh.Proof:
    """The proof that a server answered; a reloading daemon listens again only a moment after its signal."""
    patience = time.monotonic() + LISTENS_AGAIN
    while True:
        found = proof(min(40.0, max(3.0, end - time.monotonic())))
        if found.reached or time.monotonic() > min(patience, end):
            return found
        time.sleep(0.3)
