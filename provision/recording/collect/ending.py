"""Ending processes, and naming those that do not end."""

import os
import signal
import time

from .asking import TOKEN_VARIABLE
from .reading import command_line, peek, processes

MYPY = False
if MYPY:
    from typing import Any, Dict, List, Tuple

GRACE = 0.5  # seconds between SIGKILL and calling a process left behind
TICK = 0.05


def kill_group(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except OSError:
        pass


def survivors(session: int, token: str) -> "List[Dict[str, Any]]":
    """Processes of an ended item that are still there: killed again, then named."""

    def ours() -> "List[Tuple[int, str]]":
        found = []
        for pid, _, state in processes():
            fields = (peek("/proc/%d/stat" % pid) or ") ").rsplit(")", 1)[1].split()
            in_session = len(fields) > 3 and fields[3] == str(session)
            if state not in "ZX" and (in_session or _has_token(pid, token)):
                found.append((pid, state))
        return found

    first = ours()
    for pid, _ in first:
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:
            pass
    if not first:
        return []
    time.sleep(TICK)
    return [{"pid": pid, "state": state, "command": command_line(pid)} for pid, state in ours()]


def _has_token(pid: int, token: str) -> bool:
    text = peek("/proc/%d/environ" % pid)
    return text is not None and "%s=%s" % (TOKEN_VARIABLE, token) in text.split("\0")
