"""The GPU double on booted hosts: with Debian's own packages, over reboots, with faults."""

from __future__ import annotations

import subprocess
import time
from typing import TYPE_CHECKING

import pytest
from stillness import STATE, tree

from provision.facts import Facts
from provision.facts.smi_trouble import SmiTrouble
from provision.lab.double import faults
from provision.recording import remote
from provision.transport.ssh import Session, fresh_args

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from provision.lab import LabHost

# A module with nothing but the words that modinfo reads: what dkms builds from Debian's source takes minutes.
BUILD = r"""
set -e
version=$(basename "$(readlink -f /usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1)" | sed s/libnvidia-ml.so.//)
kernel=$(ls /lib/modules | tail -n 1)
mkdir -p /lib/modules/$kernel/updates/dkms
cd /tmp
printf 'const char i[] __attribute__((section(".modinfo"), used)) =
"version=%s\\0" "license=Dual MIT/GPL\\0" "name=nvidia";' "$version" > m.c
gcc=$(ls /usr/bin/x86_64-linux-gnu-gcc-[0-9]* | tail -n 1)
$gcc -c m.c -o /lib/modules/$kernel/updates/dkms/nvidia-current-open.ko
depmod -a $kernel 2>/dev/null
echo $version
"""


class OnHost:
    """Runs commands on a lab host, each over a connection of its own."""

    def __init__(self, host: LabHost) -> None:
        self.host = host

    def __call__(self, command: str, timeout: float = 300) -> tuple[str, int]:
        """Standard output and exit code of a shell command."""
        done = subprocess.run(
            [*fresh_args(self.host.target()), command],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        return done.stdout, done.returncode

    def reboot(self) -> None:
        boot, _ = self("cat /run/gpu-double/kmsg")
        self("systemctl reboot")
        for _ in range(120):
            now, code = self("systemctl is-active --quiet gpu-double && cat /run/gpu-double/kmsg")
            if code == 0 and now != boot:
                return
            time.sleep(0.25)
        pytest.fail("the host did not come back")


@pytest.fixture(scope="module", params=["bookworm", "trixie"])
def on(request: pytest.FixtureRequest, lab_up: Callable[..., LabHost]) -> OnHost:
    return OnHost(lab_up(release=request.param, gpus="A100-SXM4-80GB:2"))


@pytest.fixture
def faultless(on: OnHost) -> Iterator[OnHost]:
    yield on
    faults.clear(on.host.double)


def test_a_bare_host_has_gpus_and_no_driver(on: OnHost) -> None:
    assert on("lspci -Dn | grep -c 10de:20b2") == ("2\n", 0)
    assert "GPU double, not real hardware" in on("lspci -v -s 03:00.0 2>/dev/null")[0]
    assert on("cat /sys/class/infiniband/mlx5_0/ports/1/state") == ("4: ACTIVE\n", 0)
    assert on("type nvidia-smi")[1] == 1
    assert on("modprobe nvidia")[1] == 1
    assert on("systemctl is-system-running") == ("running\n", 0)
    assert on("test -e /proc/driver/nvidia || test -e /sys/module/nvidia")[1] == 1


def test_programs_come_with_their_packages(on: OnHost) -> None:
    out, code = on(
        "apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "
        "nvidia-smi nvidia-persistenced libcuda1 nvidia-modprobe 2>&1 | tail -n 20; exit ${PIPESTATUS[0]}",
        timeout=600,
    )
    assert code == 0, out
    said, code = on("nvidia-smi -q -x")
    assert (said.startswith("NVIDIA-SMI has failed because it couldn't communicate"), code) == (True, 9)
    assert on("systemctl is-active nvidia-persistenced")[0] == "failed\n"
    assert on("dpkg --audit && dpkg -V nvidia-smi nvidia-persistenced kmod util-linux") == ("", 0)


def test_a_built_module_loads_and_shows(on: OnHost) -> None:
    version, code = on(BUILD)
    assert code == 0
    assert on("modprobe nvidia-current-open") == ("", 0)
    for file in ("/sys/module/nvidia/version", "/proc/driver/nvidia/version"):
        assert version.strip() in on(f"cat {file}")[0]
    assert on("lsmod | grep -c ^nvidia") == ("1\n", 0)
    assert "Kernel driver in use: nvidia" in on("lspci -k -s 03:00.0 2>/dev/null")[0]
    assert on("nvidia-smi --query-gpu=driver_version --format=csv,noheader")[0] == version * 2
    assert on("su -s /bin/sh nobody -c 'nvidia-smi -pm 1'")[1] == 4


def test_persistence_and_clocks_end_with_a_reboot(on: OnHost) -> None:
    ask = "nvidia-smi --query-gpu=persistence_mode,clocks.sm --format=csv,noheader,nounits"
    assert (
        on("systemctl disable --now nvidia-persistenced && nvidia-smi -pm 1 && nvidia-smi -lgc 1410")[1] == 0
    )
    assert on(ask)[0] == "Enabled, 1410\nEnabled, 1410\n"
    on.reboot()
    # The module is back, as udev would have loaded it; what was set is gone.
    assert on(ask)[0] == "Disabled, 210\nDisabled, 210\n"


def test_the_daemon_keeps_persistence_on_while_it_runs(on: OnHost) -> None:
    ask = "nvidia-smi --query-gpu=persistence_mode --format=csv,noheader -i 0"
    assert on("systemctl enable --now nvidia-persistenced")[1] == 0
    assert on(ask)[0] == "Enabled\n"
    assert on("ps -o user= -p $(cat /run/nvidia-persistenced/nvidia-persistenced.pid)")[0] == "nvpd\n"
    assert on("rmmod nvidia")[1] == 1
    assert on("systemctl kill -s KILL nvidia-persistenced; sleep 0.2; " + ask)[0] == "Disabled\n"
    on("systemctl reset-failed nvidia-persistenced; systemctl start nvidia-persistenced")
    assert on(ask)[0] == "Enabled\n"


def test_reading_changes_no_file(on: OnHost) -> None:
    count = "find / -xdev -newer /tmp/before -type f -not -path '/var/log/*' | sort"
    on("touch /tmp/before; sleep 0.1; nvidia-smi -q -x; nvidia-smi topo -m; lspci; lsmod; dmesg")
    assert on(count) == ("", 0)


def test_a_recording_loads_no_driver_that_is_not_loaded(on: OnHost, tmp_path: Path) -> None:
    """nvidia-smi would load the module, and make its device nodes."""
    assert on("systemctl stop nvidia-persistenced; rmmod nvidia && ! lsmod | grep -q ^nvidia")[1] == 0
    try:
        with Session(on.host.target(), tmp_path) as session:
            session.run(["true"])
            files, state = tree(on.host.root), on(STATE)[0]
            recording = remote.record(session, target=on.host.target())
            after = tree(on.host.root)
        assert on(STATE)[0] == state
    finally:
        assert on("modprobe nvidia-current-open; systemctl start nvidia-persistenced")[1] == 0
    assert not {name for name in files.keys() | after.keys() if files.get(name) != after.get(name)}
    assert "not loaded" in (recording.answer("nvidia-smi.query").not_asked or "")
    assert Facts(recording).smi_trouble is SmiTrouble.NOT_LOADED


def test_faults_are_switched_from_outside(faultless: OnHost) -> None:
    on = faultless
    faults.switch(on.host.double, "version-mismatch")
    out, code = on("nvidia-smi")
    assert (out.splitlines()[0], code) == ("Failed to initialize NVML: Driver/library version mismatch", 18)
    faults.clear(on.host.double)
    assert on("dmesg | grep -c Xid")[0] == "0\n"
    faults.switch(on.host.double, "off-the-bus", 1)
    assert on("nvidia-smi")[1] == 255
    assert on("sleep 1; dmesg | grep -c 'Xid (PCI:0000:04:00): 79'")[0] == "1\n"
    assert "Unknown header type" in on("lspci -v -s 04:00.0 2>/dev/null")[0]
    faults.clear(on.host.double)
    faults.switch(on.host.double, "hang")
    assert (
        on(
            "timeout -s TERM 1 nvidia-smi & sleep 2; kill -0 $! && echo hangs; kill -9 $(pgrep -x nvidia-smi)"
        )[0]
        == "hangs\n"
    )


def test_the_packages_go_and_take_the_programs_with_them(on: OnHost) -> None:
    quiet = "DEBIAN_FRONTEND=noninteractive apt-get -qq -y"
    assert (
        on(f"{quiet} install --reinstall nvidia-smi nvidia-persistenced kmod >/dev/null 2>&1; nvidia-smi -L")[
            1
        ]
        == 0
    )
    out, code = on(f"{quiet} purge nvidia-smi nvidia-persistenced 2>&1 | tail -n 20; exit ${{PIPESTATUS[0]}}")
    assert code == 0, out
    assert on("command -v nvidia-smi nvidia-persistenced")[0] == ""
    assert on("ls /usr/bin/nvidia-smi /usr/bin/nvidia-persistenced 2>/dev/null")[0] == ""
    assert on("dpkg --audit && apt-get check -qq") == ("", 0)
