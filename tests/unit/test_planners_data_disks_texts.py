"""What data_disks writes: fstab, names, and what the control says of a mount that is not as wanted."""

# ruff: noqa: E501

from __future__ import annotations

import re
from typing import Any

import planner_host
import pytest
from disk_hosts import BIG, ROOT_LINES, asked, called, disk, empty, facts, node, system, uuid

from provision.controls.model import Judged, Status
from provision.controls.storage_wanted import wanted as control
from provision.facts.mounts import fstab
from provision.planners import data_disks_names as names
from provision.profile.compose import compose
from provision.profile.declared import declared

ALWAYS = "noatime,nofail,x-systemd.device-timeout=30s"
DATA = {"path": "/data", "disks": [called(1)]}


def text(host: Any, *mounts: dict[str, Any]) -> str:
    found = asked(host, *mounts)
    assert found.refused is None, found.refused
    return found.files[0].text or ""


def test_a_new_mount_gets_one_line_by_uuid_and_the_rest_stays() -> None:
    assert (
        text(facts(system(), empty(1)), DATA)
        == ROOT_LINES + f"UUID={uuid('/data', 1)} /data xfs {ALWAYS} 0 0\n"
    )


def test_ext4_is_checked_at_boot_and_options_are_added() -> None:
    entry = {**DATA, "filesystem": "ext4", "options": ["nosuid", "x-systemd.device-timeout=5s", "relatime"]}
    line = text(facts(system(), empty(1)), entry).splitlines()[-1]
    assert line.endswith(" /data ext4 nofail,nosuid,x-systemd.device-timeout=5s,relatime 0 2")


@pytest.mark.parametrize(
    "line",
    [
        "/dev/nvme1n1 /data xfs defaults 0 2",
        "LABEL=data /data/ xfs defaults 0 0",
        "UUID=x-1  /data\txfs noatime",
    ],
)
def test_a_line_that_is_there_is_made_ours(line: str) -> None:
    host = facts(
        system(),
        disk(1, fstype="xfs", uuid="x-1", label="data", at="/data"),
        fstab=f"{ROOT_LINES}{line}\n# end\n",
    )
    assert text(host, DATA) == f"{ROOT_LINES}UUID=x-1 /data xfs {ALWAYS} 0 0\n# end\n"


def test_a_second_line_for_a_mount_point_becomes_a_comment() -> None:
    two = f"{ROOT_LINES}UUID=x-1 /data xfs {ALWAYS} 0 0\nUUID=x-1 /data xfs defaults 0 0\n"
    host = facts(system(), disk(1, fstype="xfs", uuid="x-1", at="/data"), fstab=two)
    changed = text(host, DATA)
    found = fstab(changed)
    assert isinstance(found, tuple)
    assert [e.target for e in found].count("/data") == 1
    assert "# replaced by gpu-provision: UUID=x-1 /data xfs defaults 0 0\n" in changed
    again = facts(system(), disk(1, fstype="xfs", uuid="x-1", at="/data"), fstab=changed)
    assert text(again, DATA) == changed


def test_a_line_that_means_the_same_is_left_as_it_is_written() -> None:
    mine = f"{ROOT_LINES}UUID=x-1\t/data  xfs {ALWAYS}  0 0"
    host = facts(system(), disk(1, fstype="xfs", uuid="x-1", at="/data"), fstab=mine)
    assert text(host, DATA) == mine


def test_names_follow_from_mount_point_and_disks_alone() -> None:
    assert names.filesystem_uuid("/data", ["a", "b"]) == names.filesystem_uuid("/data", ["b", "a"])
    assert (
        len({names.filesystem_uuid(p, d) for p in ("/data", "/x") for d in (["a"], ["b"], ["a", "b"])}) == 6
    )
    assert re.fullmatch(r"([0-9a-f]{8}:){3}[0-9a-f]{8}", names.array_uuid("/data", ["a"]))
    assert re.fullmatch(r"[0-9a-f]{6}(-[0-9a-f]{4}){5}-[0-9a-f]{6}", names.volume_uuid("/data", "a"))


@pytest.mark.parametrize(
    ("path", "word"),
    [("/data", "data"), ("/mnt/nvme0", "mnt-nvme0"), ("/srv/experiments/long.name", "ts-long-name")],
)
def test_a_label_is_one_that_xfs_takes(path: str, word: str) -> None:
    assert names.word(path) == word
    assert len(word) <= 12


def test_the_name_with_the_serial_number_is_taken() -> None:
    host = facts(
        empty(1), by_id={"nvme-eui.0025": "nvme1n1", f"{called(1)}_1": "nvme1n1", "nvme-nvme.1-2": "nvme1n1"}
    )
    found = host.disks
    assert isinstance(found, tuple)
    assert names.stable(found[0]) == called(1)


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ([{"disks": 1}], "no path"),
        ([{"path": "data"}], "absolute"),
        ([{"path": "/a/../b"}], "without"),
        ([{"path": "/data", "disk": 1}], "disk is no part"),
        ([{"path": "/data", "filesystem": "zfs"}], "xfs or ext4"),
        ([{"path": "/data", "layout": "raid5"}], "raid10"),
        ([{"path": "/data", "disks": ["/dev/nvme1n1"]}], "by-id"),
        ([{"path": "/data", "disks": ["/dev/disk/by-path/x"]}], "by-id"),
        ([{"path": "/data", "disks": 0}], "above 0"),
        ([{"path": "/data", "disks": ["a", "a"]}], "twice"),
        ([{"path": "/data", "disks": {"size": "big"}}], "3.84T"),
        ([{"path": "/data", "disks": {"vendor": "x"}}], "vendor"),
        ([{"path": "/data", "options": ["a b"]}], "without blanks"),
        ([{"path": "/data", "mode": 755}], "in quotes"),
        ([{"path": "/data", "owner": "a b"}], "name of a user"),
    ],
)
def test_a_wrong_mount_is_named(value: list[Any], says: str) -> None:
    with pytest.raises(Exception, match="data_disks_mounts") as caught:
        compose("p", {}, {}, {"data_disks_mounts": value})
    assert says in str(caught.value)


def test_a_permission_to_erase_says_what_is_there() -> None:
    with pytest.raises(Exception, match="data_disks_erase"):
        compose("p", {}, {}, {"data_disks_erase": [{"disk": "nvme-x"}]})
    with pytest.raises(Exception, match="data_disks_erase"):
        compose("p", {}, {}, {"data_disks_erase": [{"disk": "nvme-x", "holds": " "}]})


# ------------------------------------------------------------------------------------------ the control

ENTRY = {**DATA, "owner": "root", "mode": "0755"}
SPACE = {
    "target": "/data",
    "source": "/dev/nvme1n1",
    "type": "xfs",
    "size": BIG,
    "available": BIG,
    "owner": "root",
    "group": "root",
    "mode": "0755",
}


def converged(**items: Any) -> Any:
    line = f"UUID={uuid('/data', 1)} /data xfs {ALWAYS} 0 0\n"
    made = disk(1, fstype="xfs", uuid=uuid("/data", 1), label="data", at="/data", options="rw,noatime,attr2")
    return facts(
        system(),
        made,
        empty(2),
        fstab=ROOT_LINES + line,
        items={"disks.space": planner_host.said([SPACE]), **items},
    )


def judge(host: Any, *mounts: dict[str, Any], **more: Any) -> tuple[Status, str]:
    profile = planner_host.profile(data_disks_mounts=list(mounts), **more)
    verdict = control(Judged(host, profile, planner_host.stack()))
    return verdict.status, verdict.actual


def test_a_converged_host_has_nothing_to_do() -> None:
    assert judge(converged(), ENTRY) == (Status.PASS, "/data")
    assert asked(converged(), ENTRY).steps == ()
    assert judge(converged())[0] is Status.SKIP


CHANGED: dict[str, list[dict[str, Any]]] = {
    "data_disks_mounts": [
        {**ENTRY, "path": "/other"},
        {**ENTRY, "disks": [called(2)]},
        {**ENTRY, "disks": 2},
        {**ENTRY, "filesystem": "ext4"},
        {**ENTRY, "layout": "lvm"},
        {**ENTRY, "options": ["nosuid"]},
        {**ENTRY, "options": ["x-systemd.device-timeout=5s"]},
        {**ENTRY, "owner": "ada"},
        {**ENTRY, "group": "ada"},
        {**ENTRY, "mode": "1777"},
    ]
}


@pytest.mark.parametrize("entry", CHANGED["data_disks_mounts"], ids=str)
def test_a_changed_mount_puts_the_role_in_the_plan(entry: dict[str, Any]) -> None:
    assert judge(converged(), entry)[0] is Status.FAIL


def test_a_permission_is_read_where_a_disk_is_missing_for_a_mount() -> None:
    host = facts(system(), disk(1, fstype="ext4", uuid="1"))
    assert "is not empty" in judge(host, DATA)[1]
    erase = [{"disk": called(1), "holds": "ext4 uuid=1"}]
    assert "ERASING ext4 uuid=1" in judge(host, DATA, data_disks_erase=erase)[1]
    assert {name for name, v in declared().items() if v.role == "data_disks"} == {
        *CHANGED,
        "data_disks_erase",
    }


@pytest.mark.parametrize(
    ("items", "status", "says"),
    [
        ({"findmnt": {"rc": 0, "stdout": '{"filesystems": [{"target": "/", "source": "/dev/sda1", "fstype": "ext4", "options": "rw"}]}'}}, Status.FAIL, "mount /data"),
        ({"units": planner_host.said(planner_host.unit("fstrim.timer", "inactive", "disabled") + "\n")}, Status.FAIL, "fstrim.timer"),
        ({"file:/etc/fstab": planner_host.text(ROOT_LINES)}, Status.FAIL, "/etc/fstab is not as wanted"),
        ({"dpkg.list": planner_host.dpkg(planner_host.CONVERGED)}, Status.FAIL, "xfsprogs is not installed"),
        ({"disks.surfaces": {"denied": True}}, Status.UNKNOWN, "disks.surfaces"),
        ({"lsblk": {"rc": None, "timed_out": True}}, Status.UNKNOWN, "lsblk"),
        ({"disks.space": {"rc": None, "timed_out": True}}, Status.UNKNOWN, "disks.space"),
    ],
)  # fmt: skip
def test_what_the_control_says(items: dict[str, Any], status: Status, says: str) -> None:
    found = judge(converged(**items), ENTRY)
    assert found[0] is status
    assert says in found[1]


def test_an_array_without_its_line_is_told() -> None:
    array = node("md127", "raid1", BIG, fstype="xfs", uuid=uuid("/data", 1, 2), at="/data")
    member = "0123456789abcdef0123456789abcdef"
    disks = [disk(n, array, fstype="linux_raid_member", uuid=member) for n in (1, 2)]
    entry = {"path": "/data", "layout": "raid1", "disks": 2}
    line = f"UUID={uuid('/data', 1, 2)} /data xfs {ALWAYS} 0 0\n"
    bare = facts(system(), *disks, fstab=ROOT_LINES + line)
    assert "name the array /dev/md/data" in judge(bare, entry)[1]
    conf = "HOMEHOST <system>\nARRAY /dev/md/x  metadata=1.2 UUID=01234567:89abcdef:01234567:89abcdef name=any:x\n"
    named = facts(
        system(),
        *disks,
        fstab=ROOT_LINES + line,
        items={"file:/etc/mdadm/mdadm.conf": planner_host.text(conf)},
    )
    assert judge(named, entry)[0] is Status.PASS
