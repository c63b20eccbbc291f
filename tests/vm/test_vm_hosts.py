"""What a virtual machine of the lab is: booted by its own disk, root on LVM, disks that come and go."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from guests import Guest, wait_until

from provision.errors import Failure
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


def test_an_audit_judges_the_running_kernel(guest: Guest) -> None:
    argv = [*COMMAND, "audit", guest.host.name, "--format", "json"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode in (1, 3), done.stderr  # a bare host
    (host,) = json.loads(done.stdout)["hosts"]
    findings = {finding["control"]: finding for finding in host["findings"]}
    assert "another machine's" not in done.stdout, "a container's excuse"
    assert findings["host.reboot-required"]["status"] == "pass"


def test_a_reboot_reads_what_the_guest_wrote_to_its_boot_partition(guest: Guest) -> None:
    before, disks = guest.boot_id(), guest.disks()
    guest.run(
        "touch /run/gone /root/stays && sed -i 's/ ro console/ ro lab.mark console/' /boot/grub/grub.cfg"
    )
    guest.run("update-initramfs -u -k all")
    guest.reboot()
    assert guest.boot_id() != before
    assert "lab.mark" in guest.run("cat /proc/cmdline")
    assert guest.run("test ! -e /run/gone && ls /root/stays") == "/root/stays"
    assert guest.disks().keys() == disks.keys()


def test_power_cut_and_controllers_in_another_order(guest: Guest) -> None:
    before, disks = guest.boot_id(), guest.disks()
    slots = "for c in /sys/class/nvme/*; do echo $(cat $c/serial) $(cat $c/address); done"
    places = dict(line.split() for line in guest.run(slots).splitlines())
    guest.run("echo kept > /root/kept && sync /root/kept && echo lost > /root/lost")
    guest.cut_power()
    assert guest.host.state == "off"
    with pytest.raises(Failure, match="are not the disks"):
        vm.reorder(guest.host, ["LABDISK0"])
    vm.reorder(guest.host, vm.order(guest.host)[::-1])
    guest.start()
    assert guest.boot_id() != before
    assert guest.run("cat /root/kept") == "kept"
    assert not guest.run("cat /root/lost 2>/dev/null || true")
    assert guest.disks().keys() == disks.keys()
    assert guest.disks() != disks, "the kernel's names are the same in another order"
    now = dict(line.split() for line in guest.run(slots).splitlines())
    assert [now[x] for x in sorted(now, key=places.__getitem__)] == sorted(now.values(), reverse=True)
    for serial, name in guest.disks().items():
        assert guest.run(f"readlink -f {vm.disk(guest.host, serial).by_id}") == f"/dev/{name}"
