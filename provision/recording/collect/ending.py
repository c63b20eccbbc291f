"""Ending processes, and naming those that do not end."""

import os
import signal
import time

from .asking import TOKEN_VARIABLE
from .reading import peek, processes

MYPY = False
if MYPY:
    from typing import Any, Dict, List

GRACE = 0.5  # seconds between SIGKILL and calling a process left behind
TICK = 0.05


def kill_group(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except OSError:
        pass


def survivors(session: int, token: str) -> "List[Dict[str, Any]]":
    """Processes of an ended item that are still there: killed again, then named."""

    def ours() -> "List[Dict[str, Any]]":
        found = []
        for pid, name, state in processes():
            fields = (peek("/proc/%d/stat" % pid) or ") ").rsplit(")", 1)[1].split()
            in_session = len(fields) > 3 and fields[3] == str(session)
            if state not in "ZX" and (in_session or (state != "D" and _has_token(pid, token))):
                found.append({"pid": pid, "state": state, "command": name})
        return found

    first = ours()
    for process in first:
        try:
            os.kill(process["pid"], signal.SIGKILL)
        except OSError:
            pass
    if not first:
        return []
    time.sleep(TICK)
    return ours()


def _has_token(pid: int, token: str) -> bool:
    """Whether a process that left its session is one of the item's. Not asked about one in state D: its
    memory may be locked by what it hangs in, and reading its environment would hang too."""
    text = peek("/proc/%d/environ" % pid)
    return text is not None and "%s=%s" % (TOKEN_VARIABLE, token) in text.split("\0")
