"""What a virtual machine of the lab is: booted by its own disk, root on LVM, disks that come and go."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

from guests import Guest, wait_until

from provision.lab import vm

if TYPE_CHECKING:
    from collections.abc import Callable


COMMAND = [sys.executable, "-m", "provision"]


def test_root_is_on_lvm_with_room_for_a_snapshot(guest: Guest) -> None:
    assert guest.run("findmnt -nro SOURCE,FSTYPE /") == "/dev/mapper/system-root ext4"
    assert guest.run("findmnt -nro FSTYPE /boot") == "ext4"
    free = guest.run("vgs --noheadings --nosuffix --units g -o vg_free system")
    assert float(free) > 4
    assert guest.run("lvcreate -q -s -n before -L 1G system/root && lvremove -q -y system/before")
    assert guest.run(
        "pvck --dump headers $(pvs --noheadings -o pv_name) >/dev/null; vgck system && echo good"
    )


def test_the_kernel_and_udev_are_its_own(guest: Guest) -> None:
    running = guest.run("uname -r")
    assert running != os.uname().release
    assert running in guest.run("ls /lib/modules").split()
    assert guest.run("systemd-detect-virt").strip() in ("qemu", "kvm")
    assert guest.run("systemctl is-active systemd-udevd") == "active"
    assert guest.run("systemctl is-system-running") == "running", guest.run("systemctl --failed")


def test_disks_are_known_by_their_serial_numbers(guest: Guest) -> None:
    assert set(guest.disks()) == {vm.SYSTEM, "LABDISK0", "LABDISK1"}
    for serial, name in guest.disks().items():
        assert guest.run(f"readlink -f {vm.disk(guest.host, serial).by_id}") == f"/dev/{name}"
    for serial in ("LABDISK0", "LABDISK1"):
        assert guest.run(f"blkid -p {vm.disk(guest.host, serial).by_id} || echo empty") == "empty"


def test_a_disk_is_plugged_and_pulled(guest: Guest, plug: Callable[..., vm.Disk]) -> None:
    before = guest.disks()
    disk = plug(64 * 2**20, lambda file: file.write_bytes(b"given".ljust(64 * 2**20, b"\0")))
    assert guest.disks().keys() - before.keys() == {disk.serial}
    assert guest.run(f"head -c 5 {disk.by_id}") == "given"
    guest.run(f"printf taken | dd of={disk.by_id} conv=notrunc,fsync status=none")
    vm.unplug(guest.host, disk.serial)
    wait_until(lambda: guest.disks() == before, "the disk is gone")
    assert vm.file(guest.host, disk.serial).read_bytes()[:5] == b"taken"


def test_a_disk_is_pulled_from_under_a_mount(guest: Guest, plug: Callable[..., vm.Disk]) -> None:
    disk = plug(64 * 2**20)
    guest.run(f"mkfs.ext4 -q {disk.by_id} && mkdir -p /mnt/t && mount {disk.by_id} /mnt/t && touch /mnt/t/a")
    vm.unplug(guest.host, disk.serial)
    wait_until(lambda: disk.serial not in guest.disks(), "the disk is gone")
    assert guest.try_("touch /mnt/t/b && sync /mnt/t/b").returncode != 0
    guest.run("umount /mnt/t")


def test_ssh_passes_standard_input_and_the_exit_code(guest: Guest) -> None:
    argv = [*COMMAND, "lab", "ssh", guest.host.name, "--", "tr a-z A-Z; exit 7"]
    done = subprocess.run(argv, input="bytes", capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (7, "BYTES")


def test_list_shows_its_kind(guest: Guest) -> None:
    listed = subprocess.run([*COMMAND, "lab", "list"], capture_output=True, text=True, check=True).stdout
    line = next(line for line in listed.splitlines() if line.startswith(guest.host.name))
    host = guest.host
    assert line.split() == [host.name, "running", "vm", host.release, host.address, host.gpus]


def test_the_double_is_on_the_bus(guest: Guest) -> None:
    assert len(re.findall(r"3D controller: NVIDIA .*A100", guest.run("lspci"))) == 2
    assert guest.run("cat /etc/gpu-double").startswith("GPU double, not real hardware")
