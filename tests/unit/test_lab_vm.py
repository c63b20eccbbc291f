from __future__ import annotations

import json
import shutil
import struct
import subprocess
from importlib import import_module
from typing import TYPE_CHECKING

import pytest

from provision.errors import Failure
from provision.lab import vm
from provision.lab.host import LabHost
from provision.lab.place import Place
from provision.lab.vm import accelerator, command, disks, image, layout, lvm

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


@pytest.fixture
def host(tmp_path: Path) -> LabHost:
    made = LabHost(Place(tmp_path), "n1", "bookworm", "T4:1", 11, "10.201.77.11", "bookworm-abc.raw")
    (made.folder / "disks").mkdir(parents=True)
    made.save("vm")
    disks.begin(made, 2, 2**20)
    return made


def test_a_host_knows_its_kind(host: LabHost) -> None:
    assert host.kind == "vm"
    (host.folder / "kind").unlink()  # as hosts of earlier labs are
    assert host.kind == "container"


def test_the_partitions_fill_the_disk_and_do_not_overlap() -> None:
    record = layout.master_boot_record(b"\xeb" * 512, 0x1234ABCD)
    assert len(record) == 512
    assert record[:440] == b"\xeb" * 440
    assert struct.unpack("<I", record[440:444]) == (0x1234ABCD,)
    assert record[510:] == b"\x55\xaa"
    entries = [struct.unpack("<B3xB3xII", record[446 + 16 * n : 462 + 16 * n]) for n in range(4)]
    (active, linux, boot, boot_size), (_, kind, start, size) = entries[:2]
    assert (active, linux, kind) == (0x80, 0x83, 0x8E)
    assert boot * 512 == layout.BOOT_START
    assert boot + boot_size == start
    assert (start + size) * 512 == layout.DISK_SIZE
    assert entries[2:] == [(0, 0, 0, 0)] * 2


def test_the_root_lies_where_lvm_says_it_does() -> None:
    area = lvm.physical_volume("bookworm-abc", 1_700_000_000)
    assert len(area) == layout.DATA_OFFSET
    text = area[lvm.METADATA_START + 512 :].partition(b"\0")[0].decode()
    assert f"pe_start = {(layout.ROOT_START - layout.PV_START) // 512}\n" in text
    assert f"extent_count = {layout.ROOT_SIZE // layout.EXTENT_SIZE}\n" in text
    assert area == lvm.physical_volume("bookworm-abc", 1_700_000_000)
    assert area != lvm.physical_volume("bookworm-abd", 1_700_000_000)


@pytest.mark.skipif(shutil.which("pvck", path="/usr/sbin:/sbin") is None, reason="lvm2 is not installed")
def test_lvm_itself_reads_the_label(tmp_path: Path) -> None:
    disk = tmp_path / "pv"
    with disk.open("wb") as file:
        file.write(lvm.physical_volume("bookworm-abc", 1_700_000_000))
        file.truncate(layout.PV_SIZE)
    said = subprocess.run(
        ["/usr/sbin/pvck", "--dump", "headers", str(disk)], capture_output=True, text=True, check=False
    )
    assert said.returncode == 0, said.stderr
    assert "expected" not in said.stdout + said.stderr
    assert "mda_header_1" in said.stdout


def test_disks_keep_their_place_until_they_are_put_in_another(host: LabHost) -> None:
    assert vm.order(host) == [vm.SYSTEM, "LABDISK0", "LABDISK1"]
    assert [vm.disk(host, serial).port for serial in vm.order(host)] == [0, 1, 2]
    vm.reorder(host, ["LABDISK1", vm.SYSTEM, "LABDISK0"])
    assert vm.order(host) == ["LABDISK1", vm.SYSTEM, "LABDISK0"]
    assert vm.file(host, "LABDISK0").stat().st_size == 2**20


@pytest.mark.parametrize("serials", [["LABDISK0"], ["LABDISK0", "LABDISK0", "LABDISK1"], []])
def test_an_order_names_every_disk_once(host: LabHost, serials: Sequence[str]) -> None:
    with pytest.raises(Failure, match="are not the disks that are plugged"):
        vm.reorder(host, serials)
    assert vm.order(host) == [vm.SYSTEM, "LABDISK0", "LABDISK1"]


def test_an_added_disk_is_not_plugged(host: LabHost) -> None:
    file = vm.add(host, "NEW", 4096)
    assert file.read_bytes() == bytes(4096)
    assert vm.disk(host, "NEW").port is None
    assert "NEW" not in vm.order(host)
    with pytest.raises(Failure, match="has a disk NEW already"):
        vm.add(host, "NEW", 4096)
    with pytest.raises(Failure, match="is not plugged"):
        vm.unplug(host, "NEW")
    vm.remove(host, "NEW")
    assert not file.exists()
    with pytest.raises(Failure, match="has no disk NEW"):
        vm.disk(host, "NEW")


def test_a_host_that_is_off_takes_no_disk(host: LabHost) -> None:
    vm.add(host, "NEW", 4096)
    with pytest.raises(Failure, match="control socket does not answer"):
        vm.plug(host, "NEW")
    assert vm.disk(host, "NEW").port is None


def test_the_machine_starts_from_its_system_disk_wherever_that_is(host: LabHost) -> None:
    vm.reorder(host, ["LABDISK1", "LABDISK0", vm.SYSTEM])
    words = command.line(host, accelerator.EMULATION)
    devices = [json.loads(word) for word in words if word.startswith("{")]
    controllers = {each["serial"]: each for each in devices if each["driver"] == "nvme"}
    assert {serial: each["bus"] for serial, each in controllers.items()} == {
        "LABDISK1": "port0",
        "LABDISK0": "port1",
        vm.SYSTEM: "port2",
    }
    assert [serial for serial, each in controllers.items() if "bootindex" in each] == [vm.SYSTEM]
    assert f"tap,id=net,ifname={host.link},script=no,downscript=no" in words


@pytest.mark.parametrize(
    ("script", "best"),
    [
        ("exit 0", accelerator.KVM),
        ("echo failed to set MSR >&2; exit 134", accelerator.EMULATION),
        ("sleep 60", accelerator.EMULATION),
    ],
)
def test_kvm_is_what_a_trial_boot_says(
    script: str, best: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "qemu"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setattr(accelerator, "PROGRAM", str(program))
    monkeypatch.setattr(accelerator, "DEVICE", "/dev/null")
    monkeypatch.setattr(accelerator, "LIMIT", 0.3)
    monkeypatch.setattr(import_module("provision.lab.place"), "RUN", tmp_path / "run")
    place = Place(tmp_path / "lab")
    assert accelerator.best(place, tmp_path / "vmlinuz") == best
    program.write_text("#!/bin/sh\nexit 1\n")
    assert accelerator.best(place, tmp_path / "vmlinuz") == best, "tried once"


def test_the_kernel_of_an_image_is_beside_it(tmp_path: Path) -> None:
    assert image.kernel_of(Place(tmp_path), "bookworm-abc.raw") == tmp_path / "images/bookworm-abc.vmlinuz"
