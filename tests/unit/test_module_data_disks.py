"""The module's own texts: mdadm.conf, notes that survive a power cut, mount points, marks of a device."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from plugins.module_utils.data_disks import looking, mounting, notes, tables
from plugins.module_utils.data_disks.commands import Refused
from provision.facts import Facts
from provision.planners import data_disks_now
from provision.recording.collect import surfaces
from provision.recording.model import Recording

if TYPE_CHECKING:
    from pathlib import Path

LINE = "ARRAY /dev/md/data metadata=1.2 UUID=01234567:89abcdef:01234567:89abcdef"
MOUNT: dict[str, Any] = {"path": "/data", "owner": None, "group": None, "mode": None, "uuid": "u-1"}


def test_an_array_gets_one_line() -> None:
    once = tables.with_array("HOMEHOST <system>", LINE)
    assert once == f"HOMEHOST <system>\n{LINE}\n"
    assert tables.with_array(once, LINE) == once
    assert tables.with_array("", LINE) == f"{LINE}\n"
    other = "ARRAY /dev/md0 metadata=1.2 name=h:0 UUID=01234567-89ab-cdef-0123-456789abcdef\n"
    assert tables.with_array(other, LINE) == other
    assert tables.with_array(f"# {LINE}\n", LINE) == f"# {LINE}\n{LINE}\n"


def test_a_note_is_written_whole_and_the_first_one_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notes, "FOLDER", str(tmp_path / "disks"))
    mount = {**MOUNT, "filesystem": "xfs", "layout": "single", "members": [{"id": "d", "marks": ["|ext4|1"]}]}
    notes.write(mount)
    notes.write({**mount, "members": [{"id": "d", "marks": []}]})
    (file,) = (tmp_path / "disks").iterdir()
    assert json.loads(file.read_text())["members"] == [{"id": "d", "marks": ["|ext4|1"]}]
    assert file.stat().st_mode & 0o777 == 0o600
    assert notes.there(mount)
    notes.forget(mount)
    assert not notes.there(mount)
    notes.forget(mount)
    assert not list((tmp_path / "disks").iterdir())


def test_a_full_disk_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "fstab"
    target.write_text("old\n")

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        notes.durable(str(target), "new\n", 0o644)
    assert target.read_text() == "old\n"
    assert [p.name for p in tmp_path.iterdir()] == ["fstab"]


def test_fstab_that_somebody_else_changed_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "FSTAB", str(tmp_path / "fstab"))
    with pytest.raises(Refused, match="changed by somebody else"):
        tables.still("0" * 64)


def test_a_mount_hides_nothing(tmp_path: Path) -> None:
    full = tmp_path / "full"
    full.mkdir()
    mounting.look({**MOUNT, "path": str(full)})
    mounting.look({**MOUNT, "path": str(tmp_path / "not-there")})
    (full / "precious").write_text("1")
    with pytest.raises(Refused, match=r"is not empty \(precious\)"):
        mounting.look({**MOUNT, "path": str(full)})
    (tmp_path / "link").symlink_to(full)
    with pytest.raises(Refused, match="symbolic link"):
        mounting.look({**MOUNT, "path": str(tmp_path / "link")})
    (tmp_path / "file").write_text("")
    with pytest.raises(Refused, match="no folder"):
        mounting.look({**MOUNT, "path": str(tmp_path / "file")})
    with pytest.raises(Refused, match="nobody-of-that-name"):
        mounting.look({**MOUNT, "path": str(full), "owner": "nobody-of-that-name"})


@pytest.mark.skipif(
    not shutil.which("mkfs.ext4") or not shutil.which("wipefs"), reason="needs e2fsprogs and util-linux"
)
@pytest.mark.parametrize("content", ["blank", "bytes", "ext4", "swap"])
def test_the_module_and_the_facts_find_the_same_marks(
    content: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On an image in a file: the recording's question on one side, the module's own look on the other."""
    image = tmp_path / "sdx"
    with image.open("wb") as file:
        file.truncate(8 << 20)
    if content == "bytes":
        with image.open("r+b") as file:
            file.seek((8 << 20) - 700)
            file.write(b"x")
    elif content != "blank":
        make = {"ext4": ["mkfs.ext4", "-q"], "swap": ["mkswap", "-q"]}[content]
        subprocess.run([*make, str(image)], check=True, capture_output=True)
    block = tmp_path / "sys" / "sdx"
    block.mkdir(parents=True)
    for name, text in {"size": "16384", "removable": "0", "ro": "0"}.items():
        (block / name).write_text(f"{text}\n")
    monkeypatch.setattr(surfaces, "SYS", str(tmp_path / "sys"))
    monkeypatch.setattr(surfaces, "DEV", str(tmp_path))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    found = Facts(Recording("h", "", True, 0.1, {"disks.surfaces": surfaces.surfaces()})).surfaces
    assert isinstance(found, dict)
    monkeypatch.setattr(looking, "SYS", str(tmp_path / "sys"))
    disk = object.__new__(looking.Disk)
    disk.id, disk.name, disk.path = "sdx", "sdx", str(image)
    monkeypatch.setattr(looking, "signatures", lambda _, real=looking.signatures: real(str(image)))
    assert list(found["sdx"].marks) == disk.marks()
    assert found["sdx"].empty == (content == "blank")


def test_host_and_planner_hold_a_mount_against_the_same_options() -> None:
    """The module runs on the host, without the planner: each has its list."""
    assert set(mounting._SHOWN) == data_disks_now.SHOWN
