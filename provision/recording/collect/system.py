"""Kernel settings, limits, the clock, and with what rights the recording was made."""

import os
import re
import struct
import time

from . import readonly
from .asking import ask
from .people import operator_address, operator_name
from .reading import as_json, peek, processes
from .units import is_running

MYPY = False
if MYPY:
    from typing import Any, Dict, List


def sysctl(wanted: "List[str]") -> "Dict[str, Any]":
    lines = []
    for name in wanted:
        value = peek("/proc/sys/" + name.replace(".", "/"))
        if value is not None:
            lines.append("%s = %s\n" % (name, " ".join(value.split())))
    return {"rc": 0, "stdout": "".join(lines), "stderr": ""}


def limits() -> "Dict[str, Any]":
    """Memlock, nofile and stack as [soft, hard], in bytes or files: of this login, systemd, services."""
    import resource

    def plain(value: int) -> "Any":
        return "unlimited" if value == resource.RLIM_INFINITY else value

    session = {
        name: [plain(value) for value in resource.getrlimit(getattr(resource, "RLIMIT_" + name.upper()))]
        for name in ("memlock", "nofile", "stack", "nproc")
    }
    services: "Dict[str, Any]" = {}
    rows = {"Max locked memory": "memlock", "Max open files": "nofile", "Max stack size": "stack"}
    for pid, name, _ in processes():
        if name in ("dockerd", "containerd", "sshd", "slurmd") and name not in services:
            for line in (peek("/proc/%d/limits" % pid) or "").splitlines():
                for title, key in rows.items():
                    if line.startswith(title):
                        pair = [int(v) if v.isdigit() else v for v in line[len(title) :].split()[:2]]
                        services.setdefault(name, {})[key] = pair
    manager = {}
    if os.path.isdir("/run/systemd/system"):
        properties = [
            "DefaultLimitMEMLOCK",
            "DefaultLimitMEMLOCKSoft",
            "DefaultLimitNOFILE",
            "DefaultLimitNOFILESoft",
            "DefaultLimitSTACK",
            "DefaultLimitSTACKSoft",
        ]
        for line in (
            ask(["systemctl", "show", "--no-pager", "-p", ",".join(properties)])
            .get("stdout", "")
            .splitlines()
        ):
            key, _, value = line.partition("=")
            manager[key] = value
    return as_json({"session": session, "services": services, "systemd": manager})


def _bounding() -> "Any":
    """The capabilities that services of this host can have at most, as the kernel writes them: those of
    PID 1.
    """
    found = re.search(r"(?m)^CapBnd:\s*([0-9a-f]+)$", peek("/proc/1/status") or "")
    return found.group(1) if found else None


_TIME_UNITS = "systemd-timesyncd chrony chronyd ntp ntpd ntpsec openntpd"


def clock() -> "Dict[str, Any]":
    """What `timedatectl show` prints, without starting systemd-timedated over the bus, which that does.

    NTPSynchronized is computed the way systemd-timedated does: adjtimex(2) with a largest error below 16 s.
    """
    try:
        zone = os.path.realpath("/etc/localtime").split("/zoneinfo/", 1)[1]
    except IndexError:
        zone = peek("/etc/timezone") or "UTC"
    active = [unit for unit in _TIME_UNITS.split() if is_running(unit + ".service")]
    lines = [
        "Timezone=" + zone,
        "LocalRTC=" + ("yes" if re.search(r"(?m)^LOCAL$", peek("/etc/adjtime") or "") else "no"),
    ]
    lines.append("NTP=" + ("yes" if active else "no"))
    try:
        import ctypes

        buffer = ctypes.create_string_buffer(512)
        if ctypes.CDLL(None, use_errno=True).adjtimex(buffer) >= 0:
            # struct timex: unsigned modes, then long offset, freq, maxerror
            largest_error = struct.unpack_from("@Illl", buffer)[3]
            lines.append("NTPSynchronized=" + ("yes" if largest_error < 16000000 else "no"))
    except (ImportError, AttributeError, OSError):
        pass
    lines.append("TimeUSec=%d" % int(time.time() * 1e6))
    if active:
        lines.append("Unit=" + active[0] + ".service")
    return {"argv": ["timedatectl", "show"], "rc": 0, "stdout": "\n".join(lines) + "\n", "stderr": ""}


def rights() -> "Dict[str, Any]":
    """Who we are on the host and what the answers were read with."""
    return as_json({
        "user": operator_name(), "uid": os.geteuid(), "root": os.geteuid() == 0,
        "sudo": os.geteuid() == 0 and bool(os.environ.get("SUDO_USER")), "read_only_view": readonly.confined,
        "from": operator_address(), "capabilities": _bounding(),
    })  # fmt: skip
