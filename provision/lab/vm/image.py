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

from .. import base, mounts, network
from ..shell import lock, run
from . import layout, lvm

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..place import Place

# What a server has beside what a container host has. grub-pc itself would ask where to install.
PACKAGES = ("lvm2", "grub2-common", "grub-pc-bin", "e2fsprogs")

# The initrd holds what the emulated machine needs and no more, now and whenever the guest builds it anew:
# software emulation unpacks `most` of them for many seconds.
MODULES = ("nvme", "ext4", "dm_mod", "virtio_pci", "virtio_net")
COMMAND_LINE = "console=tty0 console=ttyS0,115200"
CORE = ("biosdisk", "part_msdos", "ext2", "normal", "configfile", "linux", "echo", "test", "search", "gzio")
# A guest's own wait for a device is 90 s and its start limit 90 s; under emulation slow is not broken.
SYSTEMD = "[Manager]\nDefaultTimeoutStartSec=300s\nDefaultDeviceTimeoutSec=300s\n"

CUSTOMIZE = f"""set -eu
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8
printf '#!/bin/sh\\nexit 101\\n' > /usr/sbin/policy-rc.d
chmod 755 /usr/sbin/policy-rc.d
mkdir -p /etc/initramfs-tools/conf.d /etc/default/grub.d
echo MODULES=list > /etc/initramfs-tools/conf.d/lab
printf '%s\\n' {" ".join(MODULES)} > /etc/initramfs-tools/modules
cat > /etc/default/grub.d/lab.cfg <<'END'
GRUB_TIMEOUT=0
GRUB_TERMINAL=console
GRUB_CMDLINE_LINUX_DEFAULT=""
GRUB_CMDLINE_LINUX="{COMMAND_LINE}"
GRUB_DISABLE_OS_PROBER=true
END
apt-get -q -y install --no-install-recommends {" ".join(PACKAGES)}
update-initramfs -u -k all
mkdir -p /boot/grub/i386-pc
cp /usr/lib/grub/i386-pc/*.mod /usr/lib/grub/i386-pc/*.lst /boot/grub/i386-pc/
grub-mkimage -O i386-pc -p '(,msdos1)/grub' -o /boot/grub/i386-pc/core.img {" ".join(CORE)}
cp /usr/lib/grub/i386-pc/boot.img /boot/grub/i386-pc/
rm -f /usr/sbin/policy-rc.d /var/cache/apt/archives/*.deb
"""


def ensure(place: Place, release: str, say: Callable[[str], None] = lambda _: None) -> Path:
    """The system disk of a release, built first where it is not there in today's recipe (about a minute more
    than the base root). A build that was cut short is never used, and is removed by the next build.
    """
    root = base.ensure(place, release, say)
    recipe = [
        root.name,
        CUSTOMIZE,
        Path(layout.__file__).read_text(),
        Path(lvm.__file__).read_text(),
        _FSTAB,
        _MENU,
    ]
    digest = hashlib.sha256(json.dumps(recipe).encode()).hexdigest()[:12]
    image = place.images / f"{release}-{digest}.raw"
    if image.exists():
        return image
    place.images.mkdir(mode=0o700, parents=True, exist_ok=True)
    with lock(place.images / f"{release}.lock"):
        if not image.exists():
            say(f"building the Debian {release} system disk for virtual machines, once; about a minute")
            _build(place, release, root, image)
        return image


def kernel_of(place: Place, name: str) -> Path:
    """The kernel that an image was built with."""
    return (place.images / name).with_suffix(".vmlinuz")


_FSTAB = f"""{layout.ROOT_DEVICE} / ext4 errors=remount-ro 0 1
UUID={{boot}} /boot ext4 defaults 0 2
"""
_MENU = f"""linux /{{kernel}} root={layout.ROOT_DEVICE} ro {COMMAND_LINE}
initrd /{{initrd}}
boot
"""


def _build(place: Place, release: str, lower: Path, image: Path) -> None:
    work = place.images / f".{release}-building"
    if work.exists():
        mounts.clear(work)
        shutil.rmtree(work)
    for folder in ("upper", "work", "root"):
        (work / folder).mkdir(parents=True)
    root, half = work / "root", work / "disk.raw"
    mounts.lay(lower, work / "upper", work / "work", root)
    try:
        _customize(root, boot_id := str(uuid.uuid4()))
        shutil.copyfile(_newest(root / "boot", "vmlinuz-"), image.with_suffix(".vmlinuz"))
        _write(half, root, boot_id, image.name)
    finally:
        mounts.clear(work)
    os.sync()
    half.rename(image)
    shutil.rmtree(work)
    for old in place.images.glob(f"{release}-*"):
        if old.stem != image.stem:
            old.unlink(missing_ok=True)


def _customize(root: Path, boot_id: str) -> None:
    (root / "etc/resolv.conf").write_text(network.name_servers())
    inside = "mount -t proc proc proc && mount -t tmpfs tmp tmp && exec chroot . sh -s"
    run([*base.ALONE, "sh", "-c", f"cd '{root}' && {inside}"], stdin=CUSTOMIZE)
    (root / "etc/fstab").write_text(_FSTAB.format(boot=boot_id))
    manager = root / "etc/systemd/system.conf.d"
    manager.mkdir(exist_ok=True)
    (manager / "lab.conf").write_text(SYSTEMD)
    kernel, initrd = _newest(root / "boot", "vmlinuz-"), _newest(root / "boot", "initrd.img-")
    (root / "boot/grub/grub.cfg").write_text(_MENU.format(kernel=kernel.name, initrd=initrd.name))


def _newest(folder: Path, prefix: str) -> Path:
    return max(folder.glob(f"{prefix}*"), key=lambda path: path.stat().st_mtime)


def _write(disk: Path, root: Path, boot_id: str, name: str) -> None:
    grub = root / "boot/grub/i386-pc"
    loader, core = (grub / "boot.img").read_bytes(), (grub / "core.img").read_bytes()
    if len(core) > layout.BOOT_START - layout.SECTOR:
        raise AssertionError("GRUB does not fit between MBR and first partition")
    with disk.open("wb") as file:
        file.truncate(layout.DISK_SIZE)
        file.write(layout.master_boot_record(loader, int(boot_id[:8], 16)))
        file.write(core)  # GRUB's first sector reads the second one, and that one the rest
        file.seek(layout.PV_START)
        file.write(lvm.physical_volume(name, int(time.time())))
    empty = root.parent / "empty"
    shutil.copytree(root / "boot", empty, symlinks=True)
    for path in (root / "boot").iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    _format(disk, empty, layout.BOOT_START, layout.BOOT_SIZE, "boot", boot_id)
    _format(disk, root, layout.ROOT_START, layout.ROOT_SIZE, "root", str(uuid.uuid4()))


def _format(disk: Path, content: Path, start: int, size: int, label: str, identity: str) -> None:
    options = f"offset={start},lazy_itable_init=0,lazy_journal_init=1,nodiscard"
    run(
        [
            "mke2fs",
            "-q",
            "-F",
            "-t",
            "ext4",
            "-L",
            label,
            "-U",
            identity,
            "-E",
            options,
            "-d",
            content,
            disk,
            f"{size // 1024}k",
        ]
    )
