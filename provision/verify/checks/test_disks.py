"""Data mounts, written to as a job would: what is written has to reach the disk, not the root beneath it."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from testinfra.host import Host

    from provision.verify.subject import Subject

SECONDS = 60
LAST_LINES = 3
# A file of its own, gone again at the end; `findmnt --target` says what it lies on. A file system that
# hangs costs the time limit.
WRITE = r"""
set -eu
mount=$1
own=$(mktemp "$mount/.gpu-provision-XXXXXX")
trap 'rm -f "$own"' EXIT
head -c 1048576 /dev/urandom >"$own"
sync "$own"
[ "$(wc -c <"$own")" = 1048576 ]
findmnt -nro TARGET --target "$own" | tail -n 1
"""


@pytest.fixture
def paths(subject: Subject) -> tuple[str, ...]:
    """The data mounts of the profile; without any the checks are skipped."""
    found = tuple(
        str(entry["path"]).rstrip("/") for entry in subject.profile.variables.get("data_disks_mounts") or ()
    )
    if not found:
        pytest.skip("the profile names no data mount")
    return found


def test_every_data_mount_takes_writes(host: Host, paths: tuple[str, ...]) -> None:
    """A file written to each data mount lies on that mount"""
    wrong, denied = [], []
    rights = "" if host.run("id -u").stdout.strip() == "0" else "sudo -n "
    for path in paths:
        done = host.run(
            f"{rights}timeout -k 5 {SECONDS} sh -c {shlex.quote(WRITE)} write {shlex.quote(path)}"
        )
        said = " / ".join((done.stderr + done.stdout).strip().splitlines()[-LAST_LINES:])
        if rights and "sudo:" in done.stderr:
            denied.append(path)
        elif done.rc in (124, 137):
            wrong.append(f"{path}: no write was through within {SECONDS} s")
        elif done.rc != 0:
            wrong.append(f"{path}: {said or f'ended with code {done.rc}'}")
        elif done.stdout.strip() != path:
            wrong.append(f"{path}: what is written there goes to {done.stdout.strip()}")
    assert not wrong, "; ".join(wrong)
    if denied:
        pytest.skip(f"this login may not write to {', '.join(denied)}, and sudo asks for a password")
