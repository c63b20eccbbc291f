"""Snapshots on a host, without one: files put back, half a snapshot is none, and what a way back has to do."""

# ruff: noqa: E501

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from plugins.module_utils import ours
from plugins.module_utils.snapshot import back, debs, files, repack, store, ways
from provision.planners import snapshot as planner

if TYPE_CHECKING:
    from pathlib import Path


def document(**more: Any) -> dict[str, Any]:
    return {"name": "x", "taken": "2026-12-01T00:00:00Z", **more}


def whole(root: Path, name: str, taken: str = "2026-12-01T00:00:00Z") -> None:
    store.finish(store.begin(name, str(root)), document(), {"taken": taken})


def test_a_snapshot_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    root = str(tmp_path / "snapshots")
    folder = store.begin("first", root)
    assert store.names(root) == []
    with pytest.raises(store.NoSnapshot):
        store.read("first", root)
    size = store.finish(folder, document(), {"taken": "2026-12-01T00:00:00Z"})
    assert store.names(root) == ["first"]
    assert store.read("first", root, store.ABOUT)["bytes"] == size
    store.begin("second", root)  # its maker was killed
    assert store.names(root) == ["first"]
    store.begin("third", root)
    assert not (tmp_path / "snapshots" / "second.new").exists()


@pytest.mark.parametrize("name", ["", "../etc", "a/b", ".hidden", "x.new"])
def test_what_is_no_name_of_a_snapshot(name: str, tmp_path: Path) -> None:
    with pytest.raises(store.NoSnapshot):
        store.begin(name, str(tmp_path))


def test_the_first_snapshot_stays_and_of_the_others_the_newest(tmp_path: Path) -> None:
    for hour in range(6):
        whole(tmp_path, f"s{hour}", f"2026-12-01T0{hour}:00:00Z")
    found = store.names(str(tmp_path))
    assert found == [f"s{hour}" for hour in range(6)]
    assert store.surplus(found, 3) == ["s1", "s2", "s3"]
    assert store.surplus(found, 0) == ["s1", "s2", "s3", "s4"]
    assert store.surplus(found[:2], 5) == []
    store.remove("s1", str(tmp_path))
    assert "s1" not in store.names(str(tmp_path))


def test_files_come_back_with_mode_and_text_and_what_was_not_there_goes(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    text, link, new = tmp_path / "etc" / "text", tmp_path / "etc" / "link", tmp_path / "etc" / "new"
    text.parent.mkdir()
    text.write_text("old\n")
    text.chmod(0o640)
    link.symlink_to("text")
    then = {str(path): files.keep(str(path), str(kept)) for path in (text, link, new)}
    assert files.differing(then) == []
    text.write_text("other\n")
    text.chmod(0o600)
    link.unlink()
    link.symlink_to("elsewhere")
    new.write_text("came later\n")
    assert set(files.differing(then)) == set(then)
    for path in files.differing(then):
        files.put_back(path, then[path], str(kept))
    assert files.differing(then) == []
    assert text.stat().st_mode & 0o777 == 0o640
    assert sorted(path.name for path in text.parent.iterdir()) == ["link", "text"]


THEN = {
    "packages": {
        "nvidia-smi": {"state": "hi ", "version": "580.1-1"},
        "bash": {"state": "ii ", "version": "5"},
        "vim": {"state": "rc ", "version": "9"},
    },
    "debs": {"nvidia-smi": {"file": "nvidia-smi_580.1-1_amd64.deb"}},
    "holds": ["nvidia-smi", "bash"],
    "own_holds": {"nvidia_driver": ["nvidia-smi"]},
}
NOW = {
    "nvidia-smi": {"state": "hi ", "version": "595.1-1"},
    "libnew1": {"state": "ii ", "version": "595.1-1"},
    "htop": {"state": "ii ", "version": "3"},
    "bash": {"state": "ii ", "version": "6"},
    "vim": {"state": "rc ", "version": "9"},
}


def test_what_moved_returns_what_we_brought_leaves_and_nobody_elses_is_touched() -> None:
    brought = ["libnew1", "nvidia-smi", "vim"]
    assert back.returning(THEN, NOW) == ["nvidia-smi"]
    assert back.leaving(THEN, NOW, brought) == ["libnew1"]
    assert back.purging(THEN, NOW, brought) == ["libnew1"]
    assert back.others(THEN, NOW, brought) == ["bash (5 then, 6 now)", "htop (not there then, 3 now)"]
    half = {**NOW, "nvidia-smi": {"state": "iF ", "version": "580.1-1"}}
    assert back.returning(THEN, half) == ["nvidia-smi"], "one that is half-configured is not there"


def test_our_holds_are_as_they_were_and_the_administrators_later_ones_stay() -> None:
    now_own = {"nvidia_driver": ["nvidia-smi", "libnew1"]}
    assert back.marks(THEN, ["nvidia-smi", "libnew1", "htop"], now_own) == ([], ["libnew1"])
    assert back.marks(THEN, ["htop"], now_own) == (["nvidia-smi"], [])


@pytest.mark.parametrize(
    ("steps", "says"),
    [
        ([("Inst", "nvidia-smi"), ("Remv", "libnew1")], None),
        ([("Inst", "nvidia-smi"), ("Remv", "htop")], "remove htop, which came later"),
        ([("Inst", "nvidia-smi"), ("Inst", "dkms")], "install dkms"),
    ],
)
def test_a_way_back_that_does_more_is_refused(steps: list[tuple[str, str]], says: str | None) -> None:
    found = back.refusal(
        [{"do": do, "name": name, "new": "1"} for do, name in steps], ["nvidia-smi"], ["libnew1"]
    )
    assert found is None if says is None else found is not None and says in found


def test_apts_name_of_a_file() -> None:
    assert debs.file_name("dkms", "1:3.0~1+b1", "all") == "dkms_1%3a3.0~1+b1_all.deb"


def test_a_control_file_out_of_dpkgs_record() -> None:
    said = "Package: x\nStatus: install ok installed\nVersion: 1\nConffiles:\n /etc/x abc\n /etc/y def\nDescription: y\n more\n"
    assert repack.control_text(said) == "Package: x\nVersion: 1\nDescription: y\n more\n"


def test_a_file_that_another_package_diverted_lies_elsewhere() -> None:
    said = "diversion of /usr/lib/a to /usr/lib/a.gl by glx\nlocal diversion of /bin/b to /bin/b.real\n"
    assert repack.diverted(said, "mesa") == {"/usr/lib/a": "/usr/lib/a.gl", "/bin/b": "/bin/b.real"}
    assert repack.diverted(said, "glx") == {"/bin/b": "/bin/b.real"}


def test_modules_that_were_built_and_are_not_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.path.isdir", lambda path: "6.1.0-1" in str(path))
    then = [
        "nvidia/580.1, 6.1.0-1, x86_64: installed",
        "nvidia/580.1, 5.10.0-9, x86_64: installed",
        "zfs, 2.1, 6.1.0-1, x86_64: installed",
    ]
    now = ["nvidia/595.1, 6.1.0-1, x86_64: installed", "zfs/2.1, 6.1.0-1, x86_64: installed (original)"]
    assert ways.builds(then, now) == [("nvidia", "580.1", "6.1.0-1")]


def test_gpu_settings_that_differ_are_given_again() -> None:
    then = [
        "GPU-1, Enabled, Default, 400.00 W, Enabled, Disabled",
        "GPU-2, Enabled, Default, [N/A], [N/A], [N/A]",
    ]
    now = [
        "GPU-1, Disabled, Exclusive_Process, 300.00 W, Enabled, Disabled",
        "GPU-3, Enabled, Default, 1 W, Enabled, Disabled",
    ]
    assert ways.commands(then, now) == [
        ["-i", "GPU-1", "-pm", "1"], ["-i", "GPU-1", "-c", "0"], ["-i", "GPU-1", "-pl", "400.00"],
    ]  # fmt: skip
    assert ways.commands(then, None) == []


def test_what_came_by_us_is_remembered(tmp_path: Path) -> None:
    path = str(tmp_path / "state" / "brought.json")
    assert ours.brought(path) == []
    ours.note_brought(["b", "a"], path)
    ours.note_brought(iter(["c", "a"]), path)
    assert ours.brought(path) == ["a", "b", "c"]


def test_a_package_is_packed_again_from_what_is_installed(tmp_path: Path) -> None:
    if subprocess.run(["dpkg-query", "-s", "make"], capture_output=True).returncode != 0:
        pytest.skip("the package make is not installed here")
    arch = subprocess.run(
        ["dpkg-query", "-W", "-f=${Architecture}", "make"], capture_output=True, text=True
    ).stdout
    path = tmp_path / "make.deb"
    repack.pack("make", arch, str(path))
    told = subprocess.run(["dpkg-deb", "-c", path], capture_output=True, text=True, check=True).stdout
    assert "./usr/bin/make" in told
    assert debs._is(
        str(path),
        "make",
        subprocess.run(["dpkg-query", "-W", "-f=${Version}", "make"], capture_output=True, text=True).stdout,
    )


def test_every_unit_and_file_is_named_once() -> None:
    assert len(set(planner.PATHS)) == len(planner.PATHS)
    assert json.dumps(planner.names())
