"""The system disk that virtual machines of a release start from: built once, anew when its recipe changes.

It boots by itself: BIOS, GRUB in the gap behind the MBR, kernel and initrd from the boot partition as the
guest last wrote them. So a kernel that was installed in the guest, or an initrd that was built anew, runs
after the next boot, whether the guest restarted itself or its power was cut.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

from .. import base, network
from ..shell import lock, run
from . import layout, lvm

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..place import Place

BUILD = Path(__file__).with_name("build.sh")
CUSTOMIZE = Path(__file__).with_name("customize.sh")

FSTAB = f"""{layout.ROOT_DEVICE} / ext4 errors=remount-ro 0 1
UUID={{boot}} /boot ext4 defaults 0 2
"""
# systemd waits 90 s for a device and for a service. Under emulation on a busy machine, slow is not broken.
MANAGER = "[Manager]\nDefaultTimeoutStartSec=300s\nDefaultDeviceTimeoutSec=300s\n"


def ensure(place: Place, release: str, say: Callable[[str], None] = lambda _: None) -> Path:
    """The system disk of a release, built first where it is not there in today's recipe (half a minute).

    A build that was cut short is never used, leaves no mount, and is removed by the next build.
    """
    root = base.ensure(place, release, say)
    code = [Path(path).read_text() for path in (BUILD, CUSTOMIZE, layout.__file__, lvm.__file__)]
    digest = hashlib.sha256(json.dumps([root.name, *code, FSTAB, MANAGER]).encode()).hexdigest()[:12]
    image = place.images / f"{release}-{digest}.raw"
    if image.exists():
        return image
    place.images.mkdir(mode=0o700, parents=True, exist_ok=True)
    with lock(place.images / f"{release}.lock"):
        if not image.exists():
            say(f"building the Debian {release} system disk for virtual machines, once; about half a minute")
            _build(place, release, root, image)
        return image


def kernel_of(place: Place, name: str) -> Path:
    """The kernel that an image was built with."""
    return (place.images / name).with_suffix(".vmlinuz")


def _build(place: Place, release: str, lower: Path, image: Path) -> None:
    work = place.images / f".{release}-building"
    shutil.rmtree(work, ignore_errors=True)
    etc = work / "upper/etc"
    (etc / "systemd/system.conf.d").mkdir(parents=True)
    for folder in ("work", "root", "boot"):
        (work / folder).mkdir()
    identity = uuid.uuid4()
    (etc / "fstab").write_text(FSTAB.format(boot=identity))
    (etc / "systemd/system.conf.d/lab.conf").write_text(MANAGER)
    (etc / "resolv.conf").write_text(network.name_servers())
    disk = work / "disk.raw"
    with disk.open("wb") as file:
        file.truncate(layout.DISK_SIZE)
    sizes = {
        "ROOT_START": layout.ROOT_START, "ROOT_SIZE": layout.ROOT_SIZE, "BOOT_START": layout.BOOT_START,
        "BOOT_SIZE": layout.BOOT_SIZE, "BOOT_ID": identity, "ROOT_DEVICE": layout.ROOT_DEVICE,
    }  # fmt: skip
    settings = [f"{name}={value}" for name, value in sizes.items()]
    run([*base.ALONE, "env", *settings, "sh", BUILD, work, lower, CUSTOMIZE])
    _make_bootable(disk, work / "boot/grub/i386-pc", image.name, identity)
    os.sync()
    (work / "vmlinuz").rename(image.with_suffix(".vmlinuz"))
    disk.rename(image)
    shutil.rmtree(work)
    for old in place.images.glob(f"{release}-*"):
        if old.stem != image.stem:
            old.unlink(missing_ok=True)


def _make_bootable(disk: Path, grub: Path, name: str, identity: uuid.UUID) -> None:
    """Writes what lies outside of the two file systems: MBR, GRUB, and the label of the physical volume."""
    core = (grub / "core.img").read_bytes()
    if len(core) > layout.BOOT_START - layout.SECTOR:
        raise AssertionError("GRUB does not fit between MBR and first partition")
    record = layout.master_boot_record((grub / "boot.img").read_bytes(), identity.int % 2**32)
    with disk.open("r+b") as file:
        file.write(record + core)  # the MBR reads the sector behind it, and that one the rest of GRUB
        file.seek(layout.PV_START)
        file.write(lvm.physical_volume(name, int(time.time())))
