"""Role snapshot: one before the first change, one of each name, and none where it could not be a way back."""

from __future__ import annotations

from typing import Any

import pytest
from planner_host import MISSING, facts, profile, said, stack

from provision.facts.snapshots import PATTERN
from provision.planners import (
    apt_sources,
    cuda,
    fabric,
    gpu_settings,
    nccl_file,
    nvidia_repository,
    rival_modules,
)
from provision.planners.snapshot import PATHS, SnapshotWanted, names, wanted

ABOUT = (
    '{"schema": "gpu-provision/snapshot/1", "name": "%s", "taken": "2026-12-01T00:00:00Z", "why": "", '
    '"bytes": 1, "debs": 0, "outside": {}}'
)


def plan(*there: str, changed: dict[str, Any] | None = None, **variables: Any) -> SnapshotWanted:
    paths = [PATTERN.replace("*", name) for name in there]
    texts = {f"file:{p}": {"text": ABOUT % n} for p, n in zip(paths, there, strict=True)}
    listed = {f"glob:{PATTERN}": {"paths": paths}, **texts, **(changed or {})}
    return wanted(facts(items=listed), profile(**variables), stack())


def test_the_first_is_taken_without_a_name_and_only_once() -> None:
    assert plan().steps == ("keep the way back: the first snapshot",)
    assert plan().keep == PATHS
    assert plan("20261201T000000Z-first") == SnapshotWanted()


def test_one_that_is_named_is_taken_beside_others_and_only_once() -> None:
    named = plan("first", snapshot_name="run-2", snapshot_command="./provider.sh")
    assert named.name == "run-2"
    assert named.steps == ("keep the way back as snapshot run-2, with that of `./provider.sh`",)
    assert plan("first", "run-2", snapshot_name="run-2") == SnapshotWanted()


def test_a_host_without_apt_has_no_way_back_and_says_so_to_those_who_ask_for_one() -> None:
    rpm = {"dpkg.list": MISSING, "rpm.list": said("ii \tbash\t5.2\tx86_64\n")}
    assert plan(changed=rpm) == SnapshotWanted()
    refused = plan(changed=rpm, snapshot_name="run-2").refused
    assert refused is not None
    assert "--no-snapshot" in refused
    assert plan(changed=rpm, snapshot_name="run-2", snapshot_required=False).refused is None


@pytest.mark.parametrize(
    "path",
    [
        rival_modules.MODPROBE,
        apt_sources.PATH,
        nvidia_repository.SOURCE,
        nvidia_repository.KEYRING,
        nvidia_repository.PIN,
        gpu_settings.DROP_IN,
        gpu_settings.UNIT_FILE,
        gpu_settings.SCRIPT,
        nccl_file.PATH,
        cuda.LINK,
        cuda.LOADER,
        cuda.LOGIN,
        cuda.SERVICES,
        fabric.MODULES,
    ],
)
def test_what_other_roles_write_comes_back(path: str) -> None:
    assert path in PATHS


def test_who_gets_in_is_kept_and_not_put_back() -> None:
    beside = names()["beside"]
    assert "/etc/ssh/sshd_config.d/*" in beside
    assert not [path for path in PATHS if path.startswith(("/etc/ssh", "/etc/sudoers", "/etc/ufw"))]
