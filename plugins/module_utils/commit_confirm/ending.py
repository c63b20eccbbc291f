"""How a change ends: kept, or put back; both say what is true, whoever came first."""

from __future__ import annotations

import contextlib
import time
from typing import Any

from . import timer
from .state import Places, fsync_directory, state_of, transaction_of


def confirm(places: Places, transaction: str) -> str:
    """Keep the change. Returns the truth: done, or reverted (or reverting) where the timer came first."""
    try:
        places.of("armed", transaction).rename(places.of("done", transaction))
    except FileNotFoundError:
        return settled(places, transaction)
    with contextlib.suppress(OSError):
        fsync_directory(places.state)
    timer.stop(transaction)
    # The script has nothing to take back any more; it removes the copies beside the files and the boot unit.
    timer.put_back(places, transaction)
    return "done"


def revert(places: Places, transaction: str) -> str:
    """Put the old state back now. Returns the truth: reverted, done, or reverting (not all of it yet)."""
    with contextlib.suppress(OSError):
        (places.of("armed", transaction) / "why").write_text("asked\n")
    timer.fire(places, transaction)
    state = settled(places, transaction, seconds=5.0)
    timer.stop(transaction)
    return state


def revert_all(places: Places, transaction: str = "") -> dict[str, Any]:
    """Put back one transaction, or whatever is armed. Returns `changed`, `state` and the `ids` put back."""
    standing = places.standing("armed") + places.standing("reverting")
    ids = [transaction] if transaction else [transaction_of(d) for d in standing]
    states = [revert(places, each) for each in ids]
    return {
        "changed": bool(standing),
        "ids": ids,
        "state": next((s for s in states if s != "reverted"), "reverted") if states else "untouched",
    }


def settled(places: Places, transaction: str, seconds: float = 120.0) -> str:
    """The state of a transaction once nobody works on it any more."""
    end = time.monotonic() + seconds
    while (state := state_of(places, transaction)) == "reverting" and time.monotonic() < end:
        time.sleep(0.2)
    return state
