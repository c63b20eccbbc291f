# Copyright (c) the gpu-provision authors
# SPDX-License-Identifier: Apache-2.0
"""Run a script on this host in a transient systemd unit, so that a dropped line interrupts nothing.

The unit's name is fixed, which makes it the one lock a host: systemd loads a name once. Whoever finds
it running waits for it and reads its result. Log and exit status lie in a folder of their own, which
outlives both the connection and a reboot.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time

UNIT = "gpu-provision-packages"
STATE = "/var/lib/gpu-provision/packages"
_KEPT = 5
_POLL = 0.5  # seconds
_SETTLING = 30  # seconds

# TERM is ignored, and with it by all that the script starts: a shutdown waits for dpkg to end
# (TimeoutStopSec) rather than cutting it in half.
_WRAPPER = """#!/bin/sh
trap '' TERM INT HUP
cd / || exit 1
{
%s
} >'%s/log' 2>&1 </dev/null
rc=$?
echo "$rc" >'%s/rc.new' && mv '%s/rc.new' '%s/rc'
exit "$rc"
"""


class Ended:
    """What a transaction left: `rc` None where it was killed or the host went down under it."""

    def __init__(self, rc, log, folder):
        self.rc, self.log, self.folder = rc, log, folder


class StillRunning(Exception):
    """The time limit passed; the transaction goes on and a later run finds it."""


class Busy(Exception):
    """A transaction of another run holds the unit, that is, the lock."""


class NotStarted(Exception):
    """systemd would not start the unit; holds its words."""


def running():
    """The folder of the transaction that runs now, or None."""
    state = _show("ActiveState")
    if state in ("active", "activating", "deactivating", "reloading"):
        return _show("WorkingDirectory") or ""
    return None


def run(script, timeout):
    """Run a shell script to its end and return its Ended.

    Raises Busy where one runs already, StillRunning after `timeout` seconds, and NotStarted where
    systemd refuses or is not there.
    """
    folder = _new_folder()
    path = os.path.join(folder, "script")
    with open(path, "w") as out:
        out.write(_WRAPPER % (script, folder, folder, folder, folder))
    os.chmod(path, 0o700)
    rc, said = _ask(
        [
            "systemd-run",
            "--unit=" + UNIT,
            "--description=Package transaction of gpu-provision",
            "--collect",
            "--quiet",
            "--property=WorkingDirectory=" + folder,
            "--property=KillMode=process",
            "--property=TimeoutStopSec=30min",
            "--setenv=LC_ALL=C.UTF-8",
            "--setenv=DEBIAN_FRONTEND=noninteractive",
            "--setenv=DEBCONF_NONINTERACTIVE_SEEN=true",
            "--setenv=APT_LISTCHANGES_FRONTEND=none",
            "--setenv=NEEDRESTART_SUSPEND=1",
            "--setenv=PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "/bin/sh",
            path,
        ]
    )
    if rc != 0:
        shutil.rmtree(folder, ignore_errors=True)
        if running() is not None:
            raise Busy
        raise NotStarted(said)
    return wait(timeout, folder)


def wait(timeout, folder=None):
    """Wait for the transaction that runs now and read its result."""
    folder = folder or running() or ""
    end = time.monotonic() + timeout
    while running() is not None or _unsettled(folder):
        if time.monotonic() > end:
            raise StillRunning(folder)
        time.sleep(_POLL)
    rc = _read(os.path.join(folder, "rc")).strip()
    return Ended(int(rc) if rc.isdigit() else None, _read(os.path.join(folder, "log")), folder)


def _unsettled(folder):
    """Whether what was started just now has no result yet: a busy systemd may not show it at once."""
    try:
        age = time.time() - os.stat(os.path.join(folder, "script")).st_mtime
    except OSError:
        return False
    return age < _SETTLING and not os.path.exists(os.path.join(folder, "rc"))


def _new_folder():
    os.makedirs(STATE, mode=0o700, exist_ok=True)
    older = sorted(name for name in os.listdir(STATE) if name.isdigit())
    busy = os.path.basename(running() or "")
    for name in older[: max(0, len(older) - _KEPT + 1)]:
        if name != busy:
            shutil.rmtree(os.path.join(STATE, name), ignore_errors=True)
    folder = os.path.join(STATE, str(time.time_ns()))
    os.mkdir(folder, 0o700)
    return folder


def _show(prop):
    rc, said = _ask(["systemctl", "show", UNIT + ".service", "--property=" + prop, "--value"])
    return said if rc == 0 else ""


def _ask(argv):
    """Exit status and words of one of systemd's programs; 127 where it is not there."""
    try:
        done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except OSError as e:
        return 127, str(e)
    return done.returncode, done.stdout.decode("utf-8", "replace").strip()


def _read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
