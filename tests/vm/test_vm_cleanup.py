"""`down --all` leaves nothing of a virtual machine, wherever `up` was cut off."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from guests import Guest, wait_until
from lab.traces import traces

from provision import lab
from provision.lab.place import place

COMMAND = [sys.executable, "-m", "provision", "lab"]
# Runs `up` and dies, as by kill -9, just after a step.
DIES = """
import os, signal, sys
from provision import lab
from provision.lab import machine, mounts, network

room, step = sys.argv[1:3]
room = globals()[room]
real = getattr(room, step)

def dying(*args, **kwargs):
    real(*args, **kwargs)
    os.kill(os.getpid(), signal.SIGKILL)

setattr(room, step, dying)
lab.up("cut", kind="vm")
"""


@pytest.mark.usefixtures("own_lab")
@pytest.mark.parametrize("step", ["mounts.show", "network.tap", "machine.boot"])
def test_nothing_is_left_when_up_was_killed(step: str) -> None:
    died = subprocess.run([sys.executable, "-c", DIES, *step.split(".")], check=False)
    assert died.returncode == -signal.SIGKILL
    assert traces() != []
    lab.down_all()
    assert traces() == []
    assert not list(place().hosts.glob("*"))


def test_nothing_is_left_when_the_build_of_a_disk_was_killed(own_lab: Path) -> None:
    for image in (own_lab / "images").glob("*"):
        image.unlink()
    with subprocess.Popen([*COMMAND, "up", "cut", "--kind", "vm"]) as run:
        work = str(own_lab / "images/.bookworm-building")
        wait_until(lambda: any(f"build.sh {work}" in x for x in command_lines()), "the build runs", 60)
        run.kill()
    wait_until(lambda: traces() == [], "the build has ended", 30)
    lab.down_all()
    assert traces() == []


@pytest.mark.full
@pytest.mark.usefixtures("own_lab")
def test_up_takes_less_than_thirty_seconds_and_down_leaves_nothing() -> None:
    """Of what the machine gives when nothing else runs on it: that others run too is allowed for."""
    started = time.monotonic()
    subprocess.run([*COMMAND, "up", "timed", "--kind", "vm", "--release", "trixie"], check=True)
    took = time.monotonic() - started
    others = max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
    host = lab.find("timed")
    assert host is not None
    assert "VERSION_CODENAME=trixie" in Guest(host).run("cat /etc/os-release")
    assert any("process" in line for line in traces())
    lab.down("timed")
    assert traces() == []
    assert lab.hosts() == []
    assert took < 30 * others


def command_lines() -> list[str]:
    """Not by ps, which may cut them to the width of a terminal."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            continue  # has ended
    return found
