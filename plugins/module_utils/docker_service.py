# Copyright (c) the gpu-provision authors
# SPDX-License-Identifier: Apache-2.0
"""Docker's daemon as systemd runs it: what runs in it, starting it again, and whether it came back."""

from __future__ import annotations

import os
import subprocess
import time

UNIT = "docker.service"
_POLL = 0.3  # seconds


def ask(argv, timeout=60):
    """(exit status, both streams as text); 127 where the program is not there, 124 where it does not end."""
    try:
        done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout,
                              stdin=subprocess.DEVNULL, env=dict(os.environ, LC_ALL="C.UTF-8"))  # fmt: skip
    except subprocess.TimeoutExpired:
        return 124, "%s did not answer within %d s" % (argv[0], timeout)
    except OSError as e:
        return 127, str(e)
    return done.returncode, done.stdout.decode("utf-8", "replace").strip()


def active():
    return ask(["systemctl", "is-active", UNIT])[1] == "active"


def running():
    """(containers that run, whether they outlive the daemon); None for the number where docker does not
    tell.
    """
    rc, said = ask(["docker", "info", "--format", "{{.ContainersRunning}} {{.LiveRestoreEnabled}}"])
    words = said.split()
    if rc != 0 or len(words) != 2 or not words[0].isdigit():
        return None, False
    return int(words[0]), words[1] == "true"


def started():
    """When the daemon started, in seconds since 1970; None where it does not run."""
    rc, pid = ask(["systemctl", "show", UNIT, "--property=MainPID", "--value"])
    try:
        with open("/proc/%s/stat" % pid) as stat, open("/proc/uptime") as uptime:
            ticks = int(stat.read().rsplit(")", 1)[1].split()[19])
            age = float(uptime.read().split()[0]) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return None
    return time.time() - age if rc == 0 else None


def restart(patience):
    """Start the daemon anew; None where it is back and answers within `patience` seconds, else its last
    words.
    """
    ask(["systemctl", "reset-failed", UNIT, "docker.socket"])
    rc, said = ask(["systemctl", "restart", UNIT], timeout=patience)
    end = time.monotonic() + patience
    while rc == 0 and time.monotonic() < end:
        if active() and ask(["docker", "info", "--format", "{{.ServerVersion}}"], timeout=10)[0] == 0:
            return None
        time.sleep(_POLL)
    return _words() or said


def _words():
    """The daemon's own last words, of this boot."""
    _, said = ask(["journalctl", "-b", "-u", UNIT, "-n", "40", "-o", "cat", "--no-pager"])
    telling = [
        line for line in said.splitlines() if "fail" in line.lower() or "unable" in line or "error" in line
    ]
    return "\n".join(dict.fromkeys(line.strip() for line in telling[-4:]))


def validate(path):
    """Why the daemon would not take a configuration; None where it would or is too old to be asked
    (before 23.0).
    """
    rc, said = ask(["dockerd", "--validate", "--config-file", path])
    if rc == 0 or rc == 127 or "unknown flag: --validate" in said:
        return None
    return said
