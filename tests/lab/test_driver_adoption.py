"""Drivers that somebody else installed: adopted, moved when named, or refused with the way out."""

# ruff: noqa: E501

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from plays import changes
from whole import Whole

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from archive.served import Archive

    from provision.lab import LabHost

pytestmark = pytest.mark.full
QUIET = "DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends"
# What NVIDIA's installer of 550.54.14 leaves when it was run with --dkms and its programs were deleted by hand.
RUNFILE = """
set -e
k=$(ls /lib/modules)
mkdir -p /lib/modules/$k/kernel/drivers/video /usr/src/nvidia-550.54.14
cd /usr/src/nvidia-550.54.14
cat > nvidia.c <<'END'
const char info[] __attribute__((section(".modinfo"), used)) = "version=550.54.14\\0" "license=NVIDIA\\0" "name=nvidia";
END
/usr/bin/x86_64-linux-gnu-gcc-12 -c -o /lib/modules/$k/kernel/drivers/video/nvidia.ko nvidia.c
depmod $k
ln -sf libcuda.so.550.54.14 /usr/lib/x86_64-linux-gnu/libcuda.so.1
echo library > /usr/lib/x86_64-linux-gnu/libcuda.so.550.54.14
echo "nvidia-installer log file" > /var/log/nvidia-installer.log
"""


@pytest.fixture
def rented(lab_up: Callable[..., LabHost], archive: Archive, tmp_path: Path) -> Whole:
    """A host that has the archive as a provider would have entered it."""
    host = lab_up()
    archive.give(host.root, f"{archive.cuda}/debian12/x86_64/ /", "cuda-debian12")
    whole = Whole(tmp_path, host, archive)
    whole.shell("apt-get update -qq")
    return whole


def test_a_providers_set_is_adopted_and_nothing_of_it_moves(rented: Whole) -> None:
    rented.shell(f"{QUIET} nvidia-driver-pinning-580 >/dev/null 2>&1")
    rented.shell(f"{QUIET} nvidia-open nvidia-persistenced >/dev/null 2>&1; modprobe nvidia")
    before, boot = rented.installed(), rented.shell("cat /proc/sys/kernel/random/boot_id")
    built = rented.shell("dkms status; find /lib/modules -name 'nvidia*.ko*' -printf '%p %T@\\n'")
    ended = rented("bootstrap", words=("--yes",))
    assert ended.status == 0, ended.told
    assert ended.bad() == []
    assert rented.installed() == before
    assert rented.shell("dkms status; find /lib/modules -name 'nvidia*.ko*' -printf '%p %T@\\n'") == built
    # The provider's entry and key stay the only ones.
    assert rented.shell("grep -rl /cuda/repos/ /etc/apt/sources.list.d").split() == [
        "/etc/apt/sources.list.d/cuda-debian12.list"
    ]
    assert set(before) <= rented.held()
    again = rented("bootstrap", words=("--yes",))
    assert (again.status, again.planned) == (0, []), again.told
    assert rented.shell("cat /proc/sys/kernel/random/boot_id") == boot


def test_what_a_runfile_left_is_refused_until_it_is_gone(rented: Whole) -> None:
    rented.shell(RUNFILE)
    before = changes(rented.host)
    ended = rented("bootstrap", "nvidia_driver_source=nvidia", words=("--yes",))
    assert ended.status == 1, ended.told
    assert "nvidia-uninstall" in ended.told
    assert changes(rented.host) == before
    rented.shell(
        "rm -r /lib/modules/*/kernel/drivers/video/nvidia.ko /usr/src/nvidia-550.54.14 /var/log/nvidia-installer.log"
        " /usr/lib/x86_64-linux-gnu/libcuda.so.*; depmod $(ls /lib/modules)"
    )
    ended = rented("bootstrap", "nvidia_driver_source=nvidia", words=("--yes",))
    assert ended.status == 0, ended.told
    assert ended.bad() == []


def test_libraries_of_a_runfile_without_its_module_are_refused_too(rented: Whole) -> None:
    """The loader would take them beside, or in place of, those of the packages."""
    rented.shell(RUNFILE + "rm /lib/modules/$k/kernel/drivers/video/nvidia.ko; depmod $k")
    before = changes(rented.host)
    ended = rented("bootstrap", "nvidia_driver_source=nvidia", words=("--yes",))
    assert ended.status == 1, ended.told
    assert "libcuda.so.550.54.14" in ended.told
    assert changes(rented.host) == before


def test_debians_driver_is_moved_to_nvidias_when_that_is_named(rented: Whole) -> None:
    """Debian's user space and its real module, built by DKMS here, go in one transaction with what replaces them."""
    rented.shell(
        "mv /etc/apt/sources.list.d/cuda-debian12.list /root; apt-get update -qq;"
        f"{QUIET} nvidia-kernel-dkms nvidia-smi libcuda1 nvidia-persistenced >/dev/null 2>&1;"
        "mv /root/cuda-debian12.list /etc/apt/sources.list.d; apt-get update -qq; modprobe nvidia-current"
    )
    there = rented.installed()
    assert there["nvidia-kernel-dkms"].startswith("535.")
    # Nothing named: what is there serves the cards, and stays.
    ended = rented("bootstrap", words=("--yes",))
    assert ended.status == 0, ended.told
    assert {name: v for name, v in rented.installed().items() if name in there} == there
    # One package of NVIDIA's in between is two sources, which replace each other's files.
    rented.shell(
        f"mkdir /root/p; mv /etc/apt/preferences.d/* /root/p; {QUIET} --allow-change-held-packages"
        " nvidia-modprobe=580.126.20-1 >/dev/null 2>&1; mv /root/p/* /etc/apt/preferences.d"
    )
    mixed = rented.installed()
    assert mixed["nvidia-modprobe"] == "580.126.20-1"
    ended = rented("bootstrap", words=("--yes",))
    assert ended.status == 1, ended.told
    assert "more than one source" in ended.told
    assert rented.installed() == mixed
    ended = rented.moved("nvidia_driver_source=nvidia", "nvidia_driver_branch=580")
    assert ended.status == 0, ended.told
    assert ended.bad() == []
    there = rented.installed()
    assert {v for n, v in there.items() if "pinning" not in n} == {"580.126.20-1"}
    assert rented.modules() == {"580.126.20"}
    assert rented.loaded() == "580.126.20"
    again = rented.bootstrap("nvidia_driver_source=nvidia", "nvidia_driver_branch=580")
    assert (again.status, again.planned) == (0, []), again.told
