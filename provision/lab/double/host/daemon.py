"""nvidia-persistenced: a daemon that holds the GPUs open. Persistence is on while it runs, and gone when it
ends.
"""

from __future__ import annotations

import os
import pwd
import signal
import sys
import syslog
from typing import TYPE_CHECKING

from . import nvml
from .world import MARK, World

if TYPE_CHECKING:
    from types import FrameType


def main(world: World, args: list[str]) -> int:
    """Start the daemon -> exit code of the program that started it. Options as nvidia-persistenced(1) has
    them.
    """
    user, persistence, verbose, queue = None, True, False, list(args)
    while queue:
        word = queue.pop(0)
        if word in ("-h", "--help", "-v", "--version"):
            print(f"nvidia-persistenced:  version {world.userspace_version() or '?'}  ({MARK})")
            return 0
        if word in ("-u", "--user") or word.startswith("--user="):
            user = word.partition("=")[2] or (queue.pop(0) if queue else "")
        elif word in ("-V", "--verbose"):
            verbose = True
        elif word in ("--persistence-mode", "--no-persistence-mode"):
            persistence = word == "--persistence-mode"
        elif word.startswith(
            ("--uvm-persistence-mode", "--no-uvm-persistence-mode", "--nvidia-cfg-path", "--group", "-g")
        ):
            if word in ("-g", "--group", "--nvidia-cfg-path") and queue:
                queue.pop(0)
        else:
            print(
                "Invalid commandline, please run `nvidia-persistenced --help` for usage information.",
                file=sys.stderr,
            )
            return 1
    syslog.openlog("nvidia-persistenced", syslog.LOG_PID, syslog.LOG_DAEMON)
    return _start(world, user, persistence, verbose)


def _start(world: World, user: str | None, persistence: bool, verbose: bool) -> int:
    if os.geteuid() != 0:
        return _fail("Unable to access /var/run/nvidia-persistenced: Permission denied")
    if user is not None:
        try:
            account = pwd.getpwnam(user)
        except KeyError:
            print(f"Failed to find user ID of user '{user}': Success", file=sys.stderr)
            return 1
    if not world.state()["loaded"]:
        nvml.load_as_nvml_does(world)
    state = world.state()
    uid = account.pw_uid if user is not None else 0
    if not state["loaded"]:
        return _fail(
            "Failed to query NVIDIA devices. Please ensure that the NVIDIA device files (/dev/nvidia*) "
            f"exist, and that user {uid} has read and write permissions for those files."
        )
    gpus = state["loaded"]["gpus"]
    if not gpus or world.has_fault("no-devices"):
        return _fail("Unable to find any NVIDIA devices")
    directory = world.root / "run/nvidia-persistenced"
    directory.mkdir(exist_ok=True)
    ready, tell = os.pipe()
    child = os.fork()
    if child:
        os.close(tell)
        with os.fdopen(ready) as pipe:
            return 0 if pipe.read() == "ready" else 1
    os.setsid()
    os.chdir("/")
    with world.changing() as state:
        state["daemon"] = world.process(os.getpid())
        state["persistence"] = {str(index): persistence for index in gpus}
    pid_file = directory / "nvidia-persistenced.pid"
    pid_file.write_text(f"{os.getpid()}\n")
    if user is not None:
        os.chown(directory, account.pw_uid, account.pw_gid)
        os.chown(pid_file, account.pw_uid, account.pw_gid)
        os.setgroups([])
        os.setgid(account.pw_gid)
        os.setuid(account.pw_uid)
    syslog.syslog(syslog.LOG_NOTICE, f"Started ({os.getpid()}) ({MARK})")
    if verbose and persistence:
        for gpu in world.gpus():
            syslog.syslog(syslog.LOG_NOTICE, f"device {gpu['address']} - persistence mode enabled.")

    def stop(number: int, frame: FrameType | None) -> None:
        pid_file.unlink(missing_ok=True)
        syslog.syslog(syslog.LOG_NOTICE, f"Shutdown ({os.getpid()})")
        os._exit(0)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    os.write(tell, b"ready")
    os.close(tell)
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    while True:
        signal.pause()


def _fail(why: str) -> int:
    syslog.syslog(syslog.LOG_ERR, why)
    print("nvidia-persistenced failed to initialize. Check syslog for more details.", file=sys.stderr)
    return 1
