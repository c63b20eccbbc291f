"""`down --all` leaves nothing, wherever `up` was cut off."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from traces import traces

from provision import lab
from provision.errors import Failure
from provision.lab.place import place

if TYPE_CHECKING:
    from provision.lab import LabHost

pytestmark = pytest.mark.alone

SETTINGS = ("fs/inotify/max_user_instances", "fs/inotify/max_user_watches", "net/ipv4/ip_forward")

# Runs `up` and dies, as by kill -9, just before or just after a step.
DIES = """
import os, signal, sys
from provision import lab
from provision.lab import cgroups, double, keys, life, machine, mounts, network, packages, settings

when, room, step = sys.argv[1:4]
room = globals()[room]
real = getattr(room, step)

def dying(*args, **kwargs):
    if when == "after":
        real(*args, **kwargs)
    os.kill(os.getpid(), signal.SIGKILL)

setattr(room, step, dying)
lab.up("cut")
"""
# Runs `up` and stays where it waits for the host.
WAITS = """
import time
from provision import lab
from provision.lab import machine

def waiting(host):
    print("up", flush=True)
    time.sleep(60)

machine.wait_for_ssh = waiting
lab.up("cut")
"""
STEPS = [
    "before settings.raise_",
    "before network.up",
    "after network.up",
    "after life.claim",
    "after mounts.lay",
    "after keys.give",
    "after double.install",
    "after cgroups.make",
    "after machine.boot",
    "after machine.wait_for_ssh",
]


def sysctls() -> list[str]:
    return [Path("/proc/sys", name).read_text() for name in SETTINGS]


def command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""  # has ended


def login(host: LabHost) -> bool:
    from provision.transport.ssh import fresh_args

    return subprocess.run([*fresh_args(host.target()), "true"], check=False).returncode == 0


@pytest.mark.usefixtures("own_lab")
def test_nothing_is_left_of_a_host() -> None:
    before = sysctls()
    host = lab.up()
    assert login(host)
    assert any("process" in line for line in traces())
    assert any("iptables" in line for line in traces())
    lab.down(host.name)
    assert traces() == []
    assert sysctls() == before
    assert lab.hosts() == []


@pytest.mark.usefixtures("own_lab")
@pytest.mark.parametrize("step", STEPS)
def test_nothing_is_left_when_up_was_killed(step: str) -> None:
    when, _, what = step.partition(" ")
    died = subprocess.run([sys.executable, "-c", DIES, when, *what.split(".")], check=False)
    assert died.returncode == -signal.SIGKILL
    time.sleep(0.3)  # what was started goes on without it
    lab.down_all()
    assert traces() == []
    assert not list(place().hosts.glob("*"))


@pytest.mark.usefixtures("own_lab")
def test_a_name_is_free_again_when_up_was_killed() -> None:
    subprocess.run([sys.executable, "-c", DIES, "after", "keys", "give"], check=False)
    assert lab.find("cut") is None
    assert [host.state for host in lab.hosts()] == ["half-made"]
    assert login(lab.up("cut"))


@pytest.mark.usefixtures("own_lab")
def test_interrupted_up_leaves_nothing() -> None:
    with subprocess.Popen([sys.executable, "-c", WAITS], stdout=subprocess.PIPE) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == b"up\n"
        os.kill(run.pid, signal.SIGINT)
        assert run.wait(20) != 0
    assert lab.hosts() == []
    lab.down_all()
    assert traces() == []


@pytest.mark.usefixtures("own_lab")
def test_a_dead_supervisor_is_no_hindrance() -> None:
    from provision.lab import cgroups

    host = lab.up()
    nspawn = [pid for pid in cgroups.members(host.cgroup) if b"systemd-nspawn" in command_line(pid)]
    assert len(nspawn) == 2  # the supervisor and systemd-nspawn
    for pid in nspawn:
        os.kill(pid, signal.SIGKILL)
    lab.down_all()
    assert traces() == []


@pytest.mark.usefixtures("own_lab")
def test_down_of_nobody_says_so() -> None:
    with pytest.raises(Failure, match="no lab host of this name"):
        lab.down("nobody")
