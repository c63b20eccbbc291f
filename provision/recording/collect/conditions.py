"""What must hold before a question is asked, and whether an earlier one still hangs."""

import os
import re
import signal
import time

from .ending import GRACE
from .reading import age, peek, processes

MYPY = False
if MYPY:
    from typing import Any, Dict, Optional, Set


def _driver_loaded() -> "Optional[str]":
    """Asking nvidia-smi would load the module, so it is asked only where it is loaded."""
    if os.path.exists("/proc/driver/nvidia/version") or os.path.exists("/sys/module/nvidia"):
        return None
    return "the nvidia module is not loaded (asking would load it)"


def _docker_active() -> "Optional[str]":
    """docker.socket would start the daemon, so a client is used only where dockerd runs already."""
    if any(name == "dockerd" for _, name, _ in processes()):
        return None
    if not os.path.exists("/proc/1/comm"):
        return "it cannot be seen whether docker.service is active (/proc hides other users' processes)"
    return "docker.service is not active"


def _systemd_runs() -> "Optional[str]":
    return None if os.path.isdir("/run/systemd/system") else "systemd does not run on this host"


WHEN = {"driver-loaded": _driver_loaded, "docker-active": _docker_active, "systemd": _systemd_runs}


def hanging(name: str) -> "Optional[Dict[str, Any]]":
    """A process called `name` that sleeps in the kernel and cannot be ended: one with SIGKILL pending,
    or one in state D both now and half a second later that is older than the longest time limit."""

    def stuck() -> "Set[int]":
        found = set()
        for pid, comm, state in processes():
            if comm == name[:15] and state in "DRSt":
                status = peek("/proc/%d/status" % pid) or ""
                pending = re.findall(r"(?m)^(?:Sig|Shd)Pnd:\s*([0-9a-f]+)", status)
                killed = any(int(mask_, 16) & (1 << (signal.SIGKILL - 1)) for mask_ in pending)
                if killed or (state == "D" and age(pid) > 30):
                    found.add(pid)
        return found

    first = stuck()
    if not first:
        return None
    time.sleep(GRACE)
    for pid in first & stuck():
        return {"pid": pid, "command": name, "seconds": int(age(pid))}
    return None
