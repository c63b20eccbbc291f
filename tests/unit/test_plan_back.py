"""What going back changes, as it is shown before anybody agrees; and what differs between two snapshots."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from planner_host import said, text

from provision.facts import Facts
from provision.facts.known import Unknown
from provision.facts.snapshots import PATTERN, kept, snapshots
from provision.plan.back import between, changes, others
from provision.recording.model import Recording


def document(**more: Any) -> str:
    plain = {
        "schema": "gpu-provision/snapshot/1",
        "name": "s1",
        "taken": "2026-12-01T00:00:00Z",
        "why": "before 595",
        "seconds": 1.5,
        "packages": {
            "nvidia-smi": {"state": "hi ", "version": "580.1-1"},
            "bash": {"state": "ii ", "version": "5"},
            "vim": {"state": "rc ", "version": "9"},
        },
        "debs": {"nvidia-smi": {"file": "x.deb", "from": "repacked"}},
        "holds": ["nvidia-smi"],
        "files": {
            "/etc/nccl.conf": {"kind": "file", "sha256": hashlib.sha256(b"old\n").hexdigest()},
            "/etc/modprobe.d/gpu-provision.conf": {"kind": "absent"},
            "/usr/local/cuda": {"kind": "link", "target": "/usr/local/cuda-12.8"},
        },
        "beside": {},
        "modules": ["nvidia/580.1, 6.1, x86_64: installed"],
        "settings": None,
        "outside": {},
    }
    return json.dumps({**plain, **more})


def facts(**items: Any) -> Facts:
    plain = {
        "dpkg.list": said(
            "hi \tnvidia-smi\t595.1-1\tamd64\nhi \tlibnew1\t595.1-1\tamd64\nii \tbash\t6\tamd64\n"
        ),
        "apt.holds": said("libnew1\nnvidia-smi\n"),
        "file:/etc/nccl.conf": text("new\n"),
        "file:/etc/modprobe.d/gpu-provision.conf": text("blacklist nouveau\n"),
    }
    return Facts(Recording("h", "", True, 0.1, {**plain, **items}))


def test_what_going_back_changes_is_named_and_what_others_changed_stays() -> None:
    snapshot, brought = kept(document()), ("libnew1", "nvidia-smi")
    assert [change.what for change in changes(snapshot, facts(), brought)] == [
        "move nvidia-smi from 595.1-1 to 580.1-1",
        "remove libnew1 595.1-1",
        "remove /etc/modprobe.d/gpu-provision.conf",
        "put /etc/nccl.conf back",
    ]
    assert others(snapshot, facts(), brought) == ("bash (5 then, 6 now)",)
    free = facts(**{"apt.holds": said("bash\n")})
    assert "hold nvidia-smi" in [change.what for change in changes(snapshot, free, brought)]


def test_a_host_that_is_as_it_was_has_nothing_to_change() -> None:
    same = facts(
        **{
            "dpkg.list": said("hi \tnvidia-smi\t580.1-1\tamd64\nii \tbash\t5\tamd64\n"),
            "apt.holds": said("nvidia-smi\n"),
            "file:/etc/nccl.conf": text("old\n"),
            "file:/etc/modprobe.d/gpu-provision.conf": {"missing": True},
        }
    )
    assert changes(kept(document()), same, ("nvidia-smi",)) == ()


def test_two_snapshots_of_a_host_are_compared() -> None:
    later = kept(
        document(
            packages={"nvidia-smi": {"state": "hi ", "version": "595.1-1"}},
            debs={},
            files={},
            modules=[],
            holds=[],
        )
    )
    told = between(kept(document()), later)
    assert "package nvidia-smi: 580.1-1 -> 595.1-1" in told
    assert "package bash: 5 -> not there" in told
    assert "file /etc/nccl.conf: gone" in told
    assert "held no more: nvidia-smi" in told
    assert between(later, later) == ()


@pytest.mark.parametrize(
    "wrong", ["", "[]", "{}", document(schema="other"), document(files=None), document(debs=3)]
)
def test_what_is_no_document_of_a_snapshot(wrong: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 — the words differ, the kind is what callers rely on
        kept(wrong)


def about(**more: Any) -> str:
    plain = {
        "schema": "gpu-provision/snapshot/1",
        "name": "b",
        "taken": "2026-12-01T00:00:00Z",
        "why": "",
        "bytes": 7,
        "debs": 2,
        "outside": {},
        "seconds": 1,
    }
    return json.dumps({**plain, **more})


FOLDER = PATTERN.split("*")[0]


def test_snapshots_are_told_oldest_first_and_half_of_one_is_none() -> None:
    found = snapshots(
        {
            f"{FOLDER}b/about.json": about(),
            f"{FOLDER}a/about.json": about(name="a", taken="2026-12-02T00:00:00Z"),
            f"{FOLDER}c.new/about.json": "{",
        }
    )
    assert not isinstance(found, Unknown)
    assert [each.name for each in found] == ["b", "a"]


@pytest.mark.parametrize("wrong", ["{", about(schema="x"), about(bytes=None), "[]"])
def test_a_description_that_cannot_be_read_is_unknown(wrong: str) -> None:
    assert isinstance(snapshots({f"{FOLDER}b/about.json": wrong}), Unknown)


def test_only_root_knows_that_there_is_none() -> None:
    listed = {f"glob:{PATTERN}": {"paths": []}}
    assert Facts(Recording("h", "", True, 0.1, listed)).snapshots == ()
    assert isinstance(Facts(Recording("h", "", False, 0.1, listed)).snapshots, Unknown)
