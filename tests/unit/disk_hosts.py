"""Hosts with disks for the planner's tests: answers of lsblk, wipefs, findmnt and fstab, built from few words."""

# ruff: noqa: E501

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import planner_host

from provision.planners import data_disks, data_disks_names

if TYPE_CHECKING:
    from provision.facts import Facts
    from provision.planners.data_disks import DisksWanted

BIG = 3_840_755_982_336
ROOT_UUID, EFI_UUID = "6f1e2a3b-0000-4000-8000-000000000001", "AB12-CD34"
Node = dict[str, Any]
ROOT_LINES = f"UUID={ROOT_UUID} / ext4 errors=remount-ro 0 1\nUUID={EFI_UUID} /boot/efi vfat umask=0077 0 1\n"


def node(name: str, kind: str, size: int = BIG, **more: Any) -> Node:
    """One entry of `lsblk -J -b -O`, as far as it is read."""
    path = f"/dev/mapper/{name}" if kind in ("lvm", "crypt", "mpath") else f"/dev/{name}"
    plain = dict.fromkeys(("fstype", "label", "uuid", "pttype", "model", "serial", "tran"))
    point = more.pop("at", None)
    return {
        "name": name, "kname": name, "path": path, "type": kind, "size": size, **plain, "mountpoints": [point], "rota": False,
        "ro": False, "rm": False, **more,
    }  # fmt: skip


def disk(number: int, *children: Node, **more: Any) -> Node:
    """An NVMe disk `nvmeNn1` with the serial number SN."""
    return node(
        f"nvme{number}n1", "disk", more.pop("size", BIG), model="EXAMPLE MZQL23T8", serial=f"S{number}", tran="nvme",
        **({"children": list(children)} if children else {}), **more,
    )  # fmt: skip


def part(number: int, index: int, *children: Node, size: int = 1 << 30, **more: Any) -> Node:
    return node(
        f"nvme{number}n1p{index}",
        "part",
        size,
        pttype="gpt",
        **({"children": list(children)} if children else {}),
        **more,
    )


def empty(number: int, **more: Any) -> Node:
    return disk(number, **more)


def system() -> Node:
    """The system's disk: EFI partition, and root in a volume of LVM."""
    root = node("vg-root", "lvm", fstype="ext4", uuid=ROOT_UUID, at="/")
    return disk(
        0, part(0, 1, fstype="vfat", uuid=EFI_UUID, at="/boot/efi"), part(0, 2, root, fstype="LVM2_member", uuid="pv0"),
        pttype="gpt",
    )  # fmt: skip


def called(number: int) -> str:
    return f"nvme-EXAMPLE_MZQL23T8_S{number}"


def _walk(nodes: list[Node]) -> list[Node]:
    return [x for one in nodes for x in (one, *_walk(one.get("children", [])))]


def _surface(one: Node) -> Node:
    """What wipefs would list: the signature that lsblk shows, and `also`, which lsblk leaves out."""
    rows = []
    for entry in [one, *(child for child in one.get("children", []) if child["type"] == "part")]:
        lines = (
            [f"0x0,{entry['uuid'] or ''},{entry['label'] or ''},{entry['fstype']}"] if entry["fstype"] else []
        )
        lines += [f"0x200,,,{entry['pttype']}"] if entry["pttype"] and entry is one else []
        lines += [f"0x400,,,{kind}" for kind in entry.get("also", ())]
        rows.append({"name": entry["name"], "rc": 0, "signatures": "".join(f"{line}\n" for line in lines)})
    said = any(row["signatures"] for row in rows) or len(rows) > 1
    return {
        "name": one["name"],
        "removable": one["rm"],
        "read_only": one["ro"],
        "blank": None if one.get("unreadable") else one.get("blank", not said),
        "parts": rows,
    }


def facts(*disks: Node, fstab: str = ROOT_LINES, mounts: dict[str, str] | None = None, **more: Any) -> Facts:
    """A host with these disks. What an entry of lsblk says to be mounted is mounted; `mounts` are more, by target.

    `by_id` are further names (`{"nvme-x": "nvme1n1"}`), `notes` are what an earlier run wrote down, `items` any answers.
    """
    every = _walk(list(disks))
    there = [
        {"target": e["mountpoints"][0], "source": e["path"], "fstype": e["fstype"], "options": e.get("options", "rw,noatime")}
        for e in every
        if (e["mountpoints"][0] or "").startswith("/")
    ]  # fmt: skip
    there += [
        {"target": target, "source": source, "fstype": "xfs", "options": "rw"}
        for target, source in (mounts or {}).items()
    ]
    names = {
        f"nvme-EXAMPLE_MZQL23T8_{one['serial']}": one["name"]
        for one in disks
        if one["serial"] and one["name"].startswith("nvme")
    }
    notes: dict[str, Any] = more.pop("notes", {})
    units: dict[str, str] = more.pop("units", {})
    packages = {
        **planner_host.CONVERGED,
        "xfsprogs": "6.1.0-1",
        "e2fsprogs": "1.47.0-2",
        "mdadm": "4.2-5",
        "lvm2": "2.03.16-2",
    }
    items: dict[str, Any] = {
        "lsblk": planner_host.said({"blockdevices": list(disks)}),
        "blkid": planner_host.said("", 2),
        "disks.by-id": planner_host.said({**names, **more.pop("by_id", {})}),
        "disks.surfaces": planner_host.said([_surface(one) for one in disks]),
        "disks.space": planner_host.said([]),
        "findmnt": planner_host.said(
            {
                "filesystems": there
                or [{"target": "/", "source": "/dev/sda1", "fstype": "ext4", "options": "rw"}]
            }
        ),
        "file:/etc/fstab": planner_host.text(fstab),
        "file:/etc/mdadm/mdadm.conf": planner_host.MISSING,
        "file:/etc/mdadm.conf": planner_host.MISSING,
        "glob:/var/lib/gpu-provision/disks/*.json": {"paths": list(notes)},
        "glob:/etc/systemd/system/*.mount": {"paths": list(units)},
        **{f"file:{path}": planner_host.text(json.dumps(note)) for path, note in notes.items()},
        **{f"file:{path}": planner_host.text(unit) for path, unit in units.items()},
        "dpkg.list": planner_host.dpkg(packages),
        "units": planner_host.said(planner_host.unit("fstrim.timer") + "\n"),
        **more.pop("items", {}),
    }
    assert not more, more
    return planner_host.facts(items=items)


def asked(host: Facts, *mounts: dict[str, Any], erase: list[dict[str, str]] | None = None) -> DisksWanted:
    """What the planner answers for these entries of data_disks_mounts."""
    profile = planner_host.profile(data_disks_mounts=list(mounts), data_disks_erase=erase or [])
    return data_disks.wanted(host, profile, planner_host.stack())


def uuid(path: str, *numbers: int) -> str:
    """The UUID of the file system that would be made on these disks."""
    return data_disks_names.filesystem_uuid(path, [called(number) for number in numbers])
