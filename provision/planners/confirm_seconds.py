"""How long a host waits for the confirmation of a change that could cut the line, before it goes back."""

from __future__ import annotations

SECONDS = 180
# Less would leave no time for a fresh login over a slow line; with more, somebody who is shut out gives up.
LEAST, MOST = 5, 3600


def refusal(seconds: int) -> str | None:
    """Why a host may not wait so long; None where it may."""
    if LEAST <= seconds <= MOST:
        return None
    return f"a host waits from {LEAST} to {MOST} seconds for the confirmation of a change, not {seconds}"
