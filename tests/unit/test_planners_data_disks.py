"""Disk layouts: what is planned on each, and what is refused, with what is on the disk."""

# ruff: noqa: E501

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from disk_hosts import BIG, ROOT_LINES, asked, called, disk, empty, facts, node, part, system, uuid

from provision.planners import data_disks_names as names

if TYPE_CHECKING:
    from provision.facts import Facts
    from provision.planners.data_disks import DisksWanted

DATA: dict[str, Any] = {"path": "/data", "disks": 1}
NAMED: dict[str, Any] = {"path": "/data", "disks": [called(1)]}
SCRATCH: dict[str, Any] = {"path": "/scratch", "disks": "auto", "layout": "raid0"}
XFS = "6f1e2a3b-0000-4000-8000-00000000000a"
LINE = f"UUID={XFS} /data xfs noatime,nofail,x-systemd.device-timeout=30s 0 0\n"


@dataclass(frozen=True)
class Layout:
    """A host, what is asked for, and either the refusal's words or the plan's steps."""

    host: Facts
    mounts: tuple[dict[str, Any], ...] = (NAMED,)
    refused: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    on: tuple[str, ...] | None = None
    erase: list[dict[str, str]] = field(default_factory=list)


def member(
    number: int, array: str = "11111111-2222-3333-4444-555555555555", *children: dict[str, Any]
) -> dict[str, Any]:
    return disk(number, *children, fstype="linux_raid_member", label="old:0", uuid=array)


def md(name: str = "md127", kind: str = "raid0", **more: Any) -> dict[str, Any]:
    return node(name, kind, 2 * BIG, **more)


def held(text: str, number: int = 1) -> list[dict[str, str]]:
    return [{"disk": called(number), "holds": text}]


def begun(
    *numbers: int, layout: str = "single", marks: tuple[str, ...] = (), path: str = "/data"
) -> dict[str, Any]:
    members = [{"id": called(n), "marks": list(marks)} for n in numbers]
    note = {
        "path": path,
        "filesystem": "xfs",
        "layout": layout,
        "uuid": uuid(path, *numbers),
        "members": members,
    }
    return {f"/var/lib/gpu-provision/disks/{note['uuid']}.json": note}


SYS, E1, E2 = system(), empty(1), empty(2)
OURS = uuid("/data", 1)
LAYOUTS: dict[str, Layout] = {
    # Empty disks
    "one-empty": Layout(facts(SYS, E1), steps=("make xfs (single) for /data on " + called(1), "mount /data"), on=(called(1),)),
    "by-count": Layout(facts(SYS, E1, E2), (DATA,), on=(called(1),)),
    "auto-single-of-one": Layout(facts(SYS, E1), ({"path": "/data"},), on=(called(1),)),
    "auto-single-of-two": Layout(facts(SYS, E1, E2), ({"path": "/data"},), ("takes one disk", called(1), called(2), "disks: 1")),
    "raid0-of-all": Layout(facts(SYS, E1, E2), (SCRATCH,), steps=("make xfs (raid0) for /scratch", "name the array /dev/md/scratch"), on=(called(1), called(2))),
    "raid0-of-one": Layout(facts(SYS, E1), (SCRATCH,), ("takes 2 disks or more",)),
    "raid10-of-two": Layout(facts(SYS, E1, E2), ({**SCRATCH, "layout": "raid10"},), ("takes 4 disks",)),
    "raid1-unlike-sizes": Layout(facts(SYS, E1, empty(2, size=BIG // 2)), ({**SCRATCH, "layout": "raid1"},), ("unlike size", "3.5 TiB", "1.7 TiB")),
    "lvm": Layout(facts(SYS, E1), ({**NAMED, "layout": "lvm"},), steps=("make xfs (lvm) for /data",)),
    "named-before-counted-before-auto": Layout(facts(SYS, E1, E2, empty(3), empty(4)), (SCRATCH, DATA, {"path": "/fast", "disks": [called(1)]}), on=(called(3), called(4), called(2), called(1))),
    "by-model-and-size": Layout(facts(SYS, empty(1, size=BIG // 2), E2), ({"path": "/data", "disks": {"model": "MZQL23T8", "size": "3.84T"}},), on=(called(2),)),
    "too-few": Layout(facts(SYS, E1), ({"path": "/data", "disks": 2, "layout": "raid0"},), ("2 empty NVMe disks wanted, 1 found", called(0))),
    "none-at-all": Layout(facts(SYS), (DATA,), ("1 empty NVMe disk wanted, 0 found", "in use as /")),
    "no-such-disk": Layout(facts(SYS, E1), ({"path": "/data", "disks": ["nvme-OTHER"]},), ("there is no disk nvme-OTHER", called(1))),
    "by-another-of-its-names": Layout(facts(SYS, E1, by_id={"nvme-eui.0025": "nvme1n1"}), ({"path": "/data", "disks": ["nvme-eui.0025"]},), on=(called(1),)),
    "no-name-that-lasts": Layout(facts(SYS, node("nvme1n1", "disk", tran="nvme")), (DATA,), ("0 found",)),
    # The system's own
    "root-on-nvme": Layout(facts(SYS), ({"path": "/data", "disks": [called(0)]},), ("is in use", "vg-root: in use as /", "p1: in use as /boot/efi")),
    "root-on-lvm-is-never-erased": Layout(facts(SYS, E1), ({"path": "/data", "disks": [called(0)]},), ("in use", "left alone"), erase=held("partition table gpt; p1: part of 1 GiB; p1: vfat uuid=AB12-CD34; p1: in use as /boot/efi; p2: part of 1 GiB; p2: LVM2_member uuid=pv0; vg-root: lvm of 3.5 TiB; vg-root: ext4 uuid=6f1e2a3b-0000-4000-8000-000000000001; vg-root: in use as /", 0)),
    "swap-partition": Layout(facts(SYS, disk(1, part(1, 1, fstype="swap", at="[SWAP]"), pttype="gpt")), refused=("is in use", "in use as [SWAP]")),
    "mirror-below-root": Layout(facts(disk(0, part(0, 1, md("md0", "raid1", fstype="ext4", at="/"), fstype="linux_raid_member"), pttype="gpt"), disk(1, part(1, 1, md("md0", "raid1", fstype="ext4", at="/"), fstype="linux_raid_member"), pttype="gpt")), refused=("is in use", "md0: in use as /")),
    # Each kind of signature
    "ext4": Layout(facts(SYS, disk(1, fstype="ext4", label="old", uuid="0d9c-1")), refused=("is not empty", 'holds: "ext4 label=old uuid=0d9c-1"')),
    "ntfs": Layout(facts(SYS, disk(1, fstype="ntfs")), refused=("holds: \"ntfs\"",)),
    "luks": Layout(facts(SYS, disk(1, fstype="crypto_LUKS", uuid="aa")), refused=("crypto_LUKS uuid=aa",)),
    "luks-open": Layout(facts(SYS, disk(1, node("secret", "crypt", fstype="ext4", at="/secret"), fstype="crypto_LUKS")), refused=("is in use", "secret: in use as /secret")),
    "lvm-volume": Layout(facts(SYS, disk(1, fstype="LVM2_member", uuid="pv1")), refused=("LVM2_member uuid=pv1",)),
    "zfs": Layout(facts(SYS, disk(1, part(1, 1, fstype="zfs_member", label="tank"), part(1, 9), pttype="gpt")), refused=("p1: zfs_member label=tank", "p9: part")),
    "bcache": Layout(facts(SYS, disk(1, fstype="bcache")), refused=("bcache",)),
    "raid-member": Layout(facts(SYS, member(1)), refused=("linux_raid_member label=old:0",)),
    "multipath-member": Layout(facts(SYS, disk(1, node("mpatha", "mpath"), fstype="mpath_member")), refused=("mpath_member", "mpatha: mpath")),
    "ceph": Layout(facts(SYS, disk(1, fstype="ceph_bluestore")), refused=("ceph_bluestore",)),
    "gpt-without-partitions": Layout(facts(SYS, disk(1, pttype="gpt")), refused=("partition table gpt",)),
    "partition-without-anything": Layout(facts(SYS, disk(1, part(1, 1), pttype="gpt")), refused=("p1: part of 1 GiB",)),
    "two-signatures": Layout(facts(SYS, disk(1, also=("ext4", "LVM2_member"))), refused=("ext4; LVM2_member",)),
    "stale-signature-beside": Layout(facts(SYS, disk(1, fstype="xfs", also=("linux_raid_member",))), refused=("xfs; linux_raid_member",)),
    "bytes-of-no-kind": Layout(facts(SYS, disk(1, blank=False)), refused=("bytes of no known kind",)),
    # Disks that are none
    "read-only": Layout(facts(SYS, empty(1, ro=True)), refused=("is read-only",)),
    "removable": Layout(facts(SYS, node("sda", "disk", tran="usb", serial="U", rm=True), by_id={"usb-Stick": "sda"}), ({"path": "/data", "disks": ["usb-Stick"]},), ("can be taken out",)),
    "two-paths-to-one-disk": Layout(facts(SYS, node("sda", "disk", serial="W"), node("sdb", "disk", serial="W"), by_id={"wwn-a": "sda", "wwn-b": "sdb"}), ({"path": "/data", "disks": ["wwn-a"]},), ("multipath",)),
    "one-that-cannot-be-read": Layout(facts(SYS, E1, disk(2, unreadable=True)), ({"path": "/data", "disks": [called(2)]},), ("cannot be read (/dev/nvme2n1 could not be read)",)),
    "one-that-cannot-be-read-is-not-erased": Layout(facts(SYS, disk(1, unreadable=True)), refused=("cannot be read",), erase=held("what could not be read")),
    "another-that-cannot-be-read": Layout(facts(SYS, E1, disk(2, unreadable=True)), (DATA,), on=(called(1),)),
    # Arrays
    "foreign-array-half-assembled": Layout(facts(SYS, member(1, "ab", md("md127", "raid0")), E2), refused=("md127: raid0",)),
    "array-with-a-member-missing": Layout(facts(SYS, member(1, "ab"), E2), ({"path": "/data", "disks": [called(1), called(2)], "layout": "raid1"},), ("linux_raid_member",)),
    "array-under-another-name-is-adopted": Layout(facts(SYS, member(1, "ab", md(fstype="xfs", uuid=XFS)), member(2, "ab", md(fstype="xfs", uuid=XFS))), ({"path": "/data", "disks": [called(1), called(2)], "layout": "raid0"},), steps=("mount /data", "name the array /dev/md/data"), on=(called(1), called(2))),
    # What is there already
    "mounted-and-in-fstab": Layout(facts(SYS, disk(1, fstype="xfs", uuid=XFS, at="/data"), fstab=ROOT_LINES + LINE), ({"path": "/data"},), on=(called(1),)),
    "mounted-by-hand-only": Layout(facts(SYS, disk(1, fstype="xfs", uuid=XFS, at="/data")), ({"path": "/data"},), on=(called(1),)),
    "in-fstab-not-mounted": Layout(facts(SYS, disk(1, fstype="xfs", uuid=XFS), E2, fstab=ROOT_LINES + LINE), ({"path": "/data"},), steps=("mount /data",), on=(called(1),)),
    "the-wanted-one-on-a-named-disk": Layout(facts(SYS, disk(1, fstype="xfs", uuid=XFS)), steps=("mount /data",), on=(called(1),)),
    "another-one-on-auto": Layout(facts(SYS, disk(1, fstype="xfs", uuid=XFS)), ({"path": "/data"},), ("0 found", f"xfs uuid={XFS}")),
    "ours-after-the-system-was-installed-anew": Layout(facts(SYS, disk(1, fstype="xfs", uuid=OURS), E2), (DATA,), steps=("mount /data",), on=(called(1),)),
    "missing-disk": Layout(facts(SYS, E2, fstab=ROOT_LINES + LINE), ({"path": "/data"},), (f"mounts UUID={XFS}", "its disk is missing")),
    "missing-disk-noauto": Layout(facts(SYS, E2, fstab=ROOT_LINES + LINE.replace("noatime", "noauto")), ({"path": "/data"},), ("its disk is missing",)),
    "another-file-system": Layout(facts(SYS, disk(1, fstype="ext4", uuid="e", at="/data")), refused=("it is ext4, not xfs", "Nothing of it is changed")),
    "another-layout": Layout(facts(SYS, disk(1, fstype="xfs", uuid=XFS, at="/data")), ({"path": "/data", "layout": "raid0"},), ("it is of layout disk, not raid0",)),
    "on-other-disks": Layout(facts(SYS, disk(1, fstype="xfs", uuid=XFS, at="/data"), E2), ({"path": "/data", "disks": [called(2)]},), ("it is made of " + called(1),)),
    "another-number-of-disks": Layout(facts(SYS, disk(1, fstype="xfs", uuid=XFS, at="/data"), E2), ({"path": "/data", "disks": 2},), ("made of 1 disks, not of 2",)),
    "mounted-elsewhere": Layout(facts(SYS, disk(1, fstype="xfs", uuid=XFS, at="/old")), refused=("mounted at /old already",)),
    "network-mount-there": Layout(facts(SYS, E1, mounts={"/data": "nas:/export"}), refused=("is a mount of nas:/export",)),
    # fstab
    "kernel-name-and-mounted": Layout(facts(SYS, disk(1, fstype="xfs", uuid=XFS, at="/data"), fstab=ROOT_LINES + "/dev/nvme1n1 /data xfs defaults 0 2\n"), on=(called(1),)),
    "kernel-name-not-mounted": Layout(facts(SYS, disk(1, fstype="xfs", uuid=XFS), fstab=ROOT_LINES + "/dev/nvme1n1 /data xfs defaults 0 2\n"), refused=("may be another disk's by now",)),
    "fstab-with-an-error": Layout(facts(SYS, E1, fstab=ROOT_LINES + "UUID=1 /x\n"), refused=("/etc/fstab is left alone", "line 3")),
    "mount-unit-there": Layout(facts(SYS, E1, units={"/etc/systemd/system/data.mount": "[Mount]\nWhat=/dev/nvme1n1\nWhere=/data\n"}), refused=("data.mount mounts it already",)),
    # Mount points
    "over-the-system": Layout(facts(SYS, E1), ({**NAMED, "path": "/usr/data"},), ("the system's own",)),
    "twice": Layout(facts(SYS, E1, E2), (DATA, DATA), ("named twice",)),
    "below-another-of-ours": Layout(facts(SYS, E1, E2), (DATA, {"path": "/data/fast", "disks": 1}), ("lies below /data",)),
    "below-one-not-mounted": Layout(facts(SYS, E1, fstab=ROOT_LINES + "UUID=9 /srv/a xfs nofail 0 0\n"), ({**NAMED, "path": "/srv/a/b"},), ("lies below /srv/a", "not mounted now")),
    "over-another": Layout(facts(SYS, E1, fstab=ROOT_LINES + "UUID=9 /data/deep xfs nofail 0 0\n"), refused=("would hide /data/deep",)),
    # Erasing
    "erase-what-it-holds": Layout(facts(SYS, disk(1, fstype="ext4", label="old", uuid="0d9c-1")), steps=("ERASING ext4 label=old uuid=0d9c-1",), erase=held("ext4 label=old  uuid=0d9c-1"), on=(called(1),)),
    "erase-counts-as-empty": Layout(facts(SYS, disk(1, fstype="ext4", uuid="1")), (DATA,), steps=("ERASING ext4 uuid=1",), erase=held("ext4 uuid=1")),
    "erase-something-else": Layout(facts(SYS, disk(1, fstype="ext4", uuid="2")), refused=("is not empty", "ext4 uuid=2"), erase=held("ext4 uuid=1")),
    "erase-one-member-of-two": Layout(facts(SYS, member(1, "ab", md()), member(2, "ab", md())), refused=("is not empty",), erase=held("linux_raid_member label=old:0 uuid=ab; md127: raid0 of 7.0 TiB")),
    "erase-both-members": Layout(facts(SYS, member(1, "ab", md()), member(2, "ab", md())), (SCRATCH,), steps=("ERASING linux_raid_member",), erase=held("linux_raid_member label=old:0 uuid=ab; md127: raid0 of 7.0 TiB") + held("linux_raid_member label=old:0 uuid=ab; md127: raid0 of 7.0 TiB", 2)),
    "erase-in-use": Layout(facts(SYS, disk(1, fstype="xfs", uuid=XFS, at="/old")), refused=("in use",), erase=held(f"xfs uuid={XFS}; in use as /old")),
    "erase-a-disk-that-is-not-here": Layout(facts(SYS, E1), refused=("no such disk here",), erase=[{"disk": "nvme-NOT", "holds": "ext4"}]),
    # Cut off half-way
    "killed-before-the-first-byte": Layout(facts(SYS, E1, E2, notes=begun(2)), (DATA,), steps=("finish what an earlier run began",), on=(called(2),)),
    "killed-in-mkfs": Layout(facts(SYS, disk(1, blank=False), notes=begun(1)), (DATA,), steps=("finish",), on=(called(1),)),
    "killed-after-mkfs": Layout(facts(SYS, disk(1, fstype="xfs", uuid=OURS), notes=begun(1)), (DATA,), steps=("finish",), on=(called(1),)),
    "killed-in-the-wipe": Layout(facts(SYS, disk(1, pttype="gpt"), notes=begun(1, marks=("|gpt|", "p1|part|", "p1|ext4|1"))), (DATA,), steps=("finish",), on=(called(1),)),
    "killed-and-then-used-by-somebody": Layout(facts(SYS, disk(1, fstype="ext4", uuid="9"), notes=begun(1)), (DATA,), ("0 found", "ext4 uuid=9")),
    "killed-before-the-last-step": Layout(facts(SYS, disk(1, fstype="xfs", uuid=OURS, at="/data"), fstab=ROOT_LINES + LINE.replace(XFS, OURS), notes=begun(1)), (DATA,), steps=("finish what an earlier run began for /data",), on=(called(1),)),
    "killed-between-array-and-mkfs": Layout(facts(SYS, *(disk(n, md(), fstype="linux_raid_member", uuid=names.array_uuid("/scratch", [called(1), called(2)]).replace(":", "-")) for n in (1, 2)), notes=begun(1, 2, layout="raid0", path="/scratch")), (SCRATCH,), steps=("finish",), on=(called(1), called(2))),
}  # fmt: skip


def answer(layout: Layout) -> DisksWanted:
    return asked(layout.host, *layout.mounts, erase=layout.erase)


@pytest.mark.parametrize("name", LAYOUTS)
def test_layout(name: str) -> None:
    layout = LAYOUTS[name]
    found = answer(layout)
    if layout.refused:
        assert found.refused
        assert not found.mounts
        assert not found.files
        for words in layout.refused:
            assert words in found.refused
        return
    assert found.refused is None
    told = " / ".join(found.steps)
    for words in layout.steps:
        assert words in told
    for mount in found.mounts:
        assert mount.make == (f"for {mount.path} on" in told)
    if layout.on is not None:
        assert tuple(m.id for mount in found.mounts for m in mount.members) == layout.on


def test_a_disk_that_holds_anything_is_never_to_be_made_without_permission() -> None:
    """Over all layouts: each disk that would be written is empty, permitted by its contents, or begun by an earlier run."""
    for name, layout in LAYOUTS.items():
        allowed = {entry["disk"]: " ".join(entry["holds"].split()) for entry in layout.erase}
        for mount in answer(layout).mounts:
            for one in mount.members if mount.make and not mount.resume else ():
                assert not one.holds or allowed.get(one.id) == "; ".join(one.holds), name
                assert bool(one.marks) == bool(one.holds), name


def test_there_are_layouts_enough() -> None:
    assert len(LAYOUTS) >= 30
    assert sum(1 for layout in LAYOUTS.values() if layout.refused) >= 20


def test_what_is_unknown_is_refused() -> None:
    for item in ("lsblk", "disks.surfaces", "findmnt", "file:/etc/fstab"):
        found = asked(facts(SYS, E1, items={item: {"denied": True}}), DATA)
        assert found.refused, item


def test_a_host_that_shares_its_kernel_has_no_disks_of_its_own() -> None:
    host = facts(SYS, E1, items={"virtualization": {"rc": 0, "stdout": "systemd-nspawn\n", "stderr": ""}})
    assert "the machine's" in (asked(host, DATA).refused or "")


def test_nothing_asked_is_nothing_wanted() -> None:
    found = asked(facts(SYS, E1))
    assert (found.files, found.units, found.packages, found.steps, found.mounts) == ((), (), (), (), ())
