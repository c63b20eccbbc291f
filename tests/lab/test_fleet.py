"""Three hosts, of which the first cannot be hardened: it is put back, and nobody touches the others."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from ssh_shapes import SHAPES

from provision.access import fresh
from provision.access.door import door_to
from provision.transport import ssh

if TYPE_CHECKING:
    from collections.abc import Callable

    from provision.lab import LabHost

RELOAD_FAILS = next(shape.setup for shape in SHAPES if shape.name == "cannot-reload")
SHORT = ("--set", "nvidia_driver_source=debian")


@pytest.fixture(scope="module")
def three(lab_up: Callable[..., LabHost]) -> tuple[LabHost, ...]:
    return tuple(lab_up() for _ in range(3))


def etc(host: LabHost) -> str:
    """Every file below /etc by its sum, and every link by its target."""
    look = "cd /etc; find . -type f -exec sha256sum {} + | sort; find . -type l -printf '%p %l\\n' | sort"
    argv = [*ssh.fresh_args(host.target()), look]
    return subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True).stdout


def bootstrap(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    env = {**kept, "HOME": str(folder)}
    return subprocess.run(
        [Path(sys.executable).with_name("gpu-provision"), "bootstrap", *words, "--yes", *SHORT],
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_the_first_that_reverts_stops_the_fleet(three: tuple[LabHost, ...], tmp_path: Path) -> None:
    first, *others = three
    argv = [*ssh.fresh_args(first.target()), "sh -s"]
    subprocess.run(argv, input=RELOAD_FAILS, text=True, check=True, capture_output=True)
    before = [etc(host) for host in three]
    names = [host.name for host in three]
    done = bootstrap(tmp_path, *names, "--format", "json")
    assert done.returncode == 1, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    hosts = {host["host"]: host for host in report["hosts"]}
    assert {name: host["state"] for name, host in hosts.items()} == {
        first.name: "reverted",
        **{host.name: "untouched" for host in others},
    }
    for host in others:
        assert f"not begun: {first.name} went before it and was left reverted" in hosts[host.name]["trouble"]
        assert not hosts[host.name]["passes"]
    assert hosts[first.name]["passes"][0]["roles"] == ["snapshot", "ssh_hardening", "firewall"], (
        "no driver was built to find out"
    )
    assert [etc(host) for host in three] == before
    assert all(fresh.login(door_to(host.target())).holds for host in three)
    stranger = bootstrap(tmp_path, first.name, "root@192.0.2.1", "--resume")
    assert stranger.returncode == 2
    assert "no earlier bootstrap had root@192.0.2.1" in stranger.stderr
