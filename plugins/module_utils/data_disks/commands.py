# Copyright (c) the gpu-provision authors
# SPDX-License-Identifier: Apache-2.0
"""Running programs, and one call at a time on a host."""

from __future__ import annotations

import contextlib
import fcntl
import os
import subprocess

LOCK = "/run/lock/gpu-provision-data-disks"


class Refused(Exception):
    """Why nothing more is done; the text says what was found."""


def ask(argv, timeout=60):
    """(exit status, both streams as text); 127 where the program is not there, 124 where it does not end."""
    try:
        done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout,
                              stdin=subprocess.DEVNULL, env=dict(os.environ, LC_ALL="C.UTF-8"))  # fmt: skip
    except subprocess.TimeoutExpired:
        return 124, "%s did not end within %d s" % (argv[0], timeout)
    except OSError as e:
        return 127, str(e)
    return done.returncode, done.stdout.decode("utf-8", "replace").strip()


def run(argv, timeout=600):
    """Its words; raises Refused with them where it fails."""
    rc, said = ask(argv, timeout)
    if rc != 0:
        raise Refused("`%s` ended with status %d: %s" % (" ".join(argv), rc, said[-800:]))
    return said


def settle():
    """Wait until udev has seen to what changed; a host without udev has nothing to wait for."""
    ask(["udevadm", "settle", "--timeout=60"], 70)


@contextlib.contextmanager
def one_at_a_time(*, wanted):
    """The lock of this module on this host."""
    if not wanted:
        yield
        return
    with open(LOCK, "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Refused("another run works on the data disks of this host now") from None
        yield
