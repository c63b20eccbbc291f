"""ssh-audit, which is not ours, judges hardened hosts: no failure and no warning."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from plays import Controller

if TYPE_CHECKING:
    from collections.abc import Callable

    from provision.lab import LabHost


def found(address: str) -> list[str]:
    """What ssh-audit objects to: `kex curve25519-sha256: does not provide …`, …"""
    tool = Path(sys.executable).with_name("ssh-audit")
    done = subprocess.run(
        [tool, "--json", "--skip-rate-test", address],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    document = json.loads(done.stdout)
    assert document["kex"], "the server was asked"
    return [
        f"{kind} {entry['algorithm']}: {note}"
        for kind in ("kex", "key", "enc", "mac")
        for entry in document[kind]
        for level in ("fail", "warn")
        for note in entry["notes"].get(level, [])
    ]


@pytest.mark.parametrize("release", ["bookworm", "trixie"])
def test_no_failure_and_no_warning(release: str, lab_up: Callable[..., LabHost], tmp_path: Path) -> None:
    host = lab_up(release=release)
    assert found(host.address), "as Debian ships it, there is something to find"
    control = Controller(tmp_path, host)
    status, output = control.role("ssh_hardening")
    assert status == 0, output[-2000:]
    assert found(host.address) == []
    status, output = control.role("ssh_hardening", ssh_hardening_old_clients=True)
    assert status == 0, output[-2000:]
    left = found(host.address)
    assert left
    assert all("post-quantum" in line for line in left), left
