"""Ubuntu's packages, on a Debian lab host that poses as Ubuntu 24.04: its os-release, kernels and archive.

This shows what the role makes of Ubuntu's names, versions and dependencies; Ubuntu itself is not run here.
"""

# ruff: noqa: E501

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from whole import Whole

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from archive.served import Archive

    from provision.lab import LabHost

pytestmark = pytest.mark.full
KERNELS = ["6.8.0-60-generic", "6.8.0-62-generic"]
QUIET = "DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends"
# Debian's main stays, for what Ubuntu has in main too (dkms, adduser). Its kernel goes, files and all.
POSE = f"""
set -e
sed -i 's/ main .*/ main/' /etc/apt/sources.list
rm /etc/os-release
cat > /etc/os-release <<'END'
PRETTY_NAME="Ubuntu 24.04.3 LTS (a lab host that poses)"
NAME="Ubuntu"
VERSION_ID="24.04"
VERSION_CODENAME=noble
ID=ubuntu
ID_LIKE=debian
END
apt-get update -qq
{QUIET} dkms linux-image-generic linux-headers-generic linux-image-{KERNELS[0]} linux-headers-{KERNELS[0]} >/dev/null 2>&1
DEBIAN_FRONTEND=noninteractive apt-get purge -qq -y 'linux-image-6.1*' 'linux-image-amd64' 'linux-headers-*amd64' >/dev/null 2>&1
rm -rf /lib/modules/6.1* /boot/*6.1*
"""
SOURCE = "nvidia_driver_source=ubuntu"


@pytest.fixture
def posing(lab_up: Callable[..., LabHost], archive: Archive, tmp_path: Path) -> Whole:
    host = lab_up()
    archive.give(host.root, f"{archive.ubuntu} noble main", "ubuntu")
    whole = Whole(tmp_path, host, archive)
    whole.shell(POSE)
    assert whole.kernels() == KERNELS
    return whole


def test_each_kernel_gets_the_module_that_ubuntu_built(posing: Whole) -> None:
    first = posing.bootstrap(SOURCE, "nvidia_driver_branch=580")
    assert first.status == 0, first.told
    assert first.bad() == []
    there = posing.installed()
    for kernel in KERNELS:
        assert f"linux-modules-nvidia-580-server-open-{kernel}" in there
    assert not [name for name in there if "dkms" in name]
    assert posing.shell("dkms status").strip() == ""
    assert posing.modules() == {"580.126.20"}
    assert there["nvidia-utils-580-server"] == "580.126.20-0ubuntu0.24.04.2"
    # restricted and multiverse came from a file of ours; the administrator's entry is as it was.
    assert "Components: restricted multiverse" in posing.shell(
        "cat /etc/apt/sources.list.d/gpu-provision.sources"
    )
    assert posing.held() >= {name for name in there if not name.startswith("linux-")}
    again = posing.bootstrap(SOURCE, "nvidia_driver_branch=580")
    assert (again.status, again.planned) == (0, []), again.told
    # A branch has names of its own on Ubuntu: all of the old one goes in the same transaction.
    moved = posing.moved(SOURCE, "nvidia_driver_branch=595")
    assert moved.status == 0, moved.told
    assert moved.bad() == []
    assert posing.modules() == {"595.58.03"}
    assert not [name for name in posing.installed() if "580" in name]
    assert not [name for name in posing.held() if "580" in name]


def test_a_kernel_that_ubuntu_built_no_module_for_has_dkms_build_all(posing: Whole) -> None:
    own = "6.12.1-own"
    posing.shell(
        f"mkdir -p /lib/modules/{own} /usr/src/{own}/include; echo kernel > /boot/vmlinuz-{own}; echo all: > /usr/src/{own}/Makefile;"
        f"touch /lib/modules/{own}/modules.builtin /lib/modules/{own}/modules.order; ln -s /usr/src/{own} /lib/modules/{own}/build;"
        f"depmod {own}; echo initramfs > /boot/initrd.img-{own}"
    )
    ended = posing.bootstrap(SOURCE, "nvidia_driver_branch=580")
    assert ended.status == 0, ended.told
    assert posing.modules() == {"580.126.20"}
    assert posing.shell("dkms status | grep -c ': installed'").strip() == "3"
    assert not [name for name in posing.installed() if name.startswith("linux-modules-nvidia")]
