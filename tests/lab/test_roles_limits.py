"""The role limits on a lab host: what a fresh login and a new service may do, read from inside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from plays import Controller
from test_roles_gpu import changes, play

if TYPE_CHECKING:
    from pathlib import Path

    from provision.lab import LabHost

# Lower than any host's own, as not every machine that runs this may raise limits.
WANTED: dict[str, Any] = {"limits_memlock": 4194304, "limits_nofile": 8192, "limits_stack": 67108864}
# Locked memory in KiB, files (soft and hard), stack in KiB.
LIMITS = "ulimit -l; ulimit -Sn; ulimit -Hn; ulimit -s"
SERVICE = f"systemd-run --quiet --wait --pipe --collect bash -c '{LIMITS}'"


@pytest.fixture
def control(lab_host: LabHost, tmp_path: Path) -> Controller:
    return Controller(tmp_path, lab_host)


def test_limits_are_given_kept_and_taken_back(control: Controller) -> None:
    logins, services = (control.shell(f"bash -c '{LIMITS}'"), control.shell(SERVICE))
    before = changes(control.host)
    status, output, _ = play(control, "limits", check=True, **WANTED)
    assert status == 0, output
    assert changes(control.host) == before

    status, output, changed = play(control, "limits", **WANTED)
    assert (status, changed) == (0, 1), output
    assert control.shell(f"bash -c '{LIMITS}'").split() == ["4096", "8192", "8192", "65536"]
    assert control.shell(SERVICE).split() == ["4096", "1024", "8192", "65536"]

    after = changes(control.host)
    status, output, changed = play(control, "limits", **WANTED)
    assert (status, changed) == (0, 0), output
    assert changes(control.host) == after

    status, output, changed = play(control, "limits")
    assert (status, changed) == (0, 1), output
    assert control.shell(f"bash -c '{LIMITS}'") == logins
    assert control.shell(SERVICE) == services
    ours = "find /etc -name '*gpu-provision*'"
    assert control.shell(ours) == ""


def test_a_limit_that_would_shut_everybody_out_is_refused(control: Controller) -> None:
    most = int(control.shell("cat /proc/sys/fs/nr_open"))
    before = changes(control.host)
    status, output, _ = play(control, "limits", limits_nofile=most + 1)
    assert status != 0
    assert "every login would fail" in output
    assert changes(control.host) == before
