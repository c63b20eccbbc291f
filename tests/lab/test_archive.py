"""The tests' own package archive: what apt, DKMS and the GPU double make of it on a lab host."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from plays import Controller

if TYPE_CHECKING:
    from collections.abc import Callable

    from archive.served import Archive

    from provision.lab import LabHost


@pytest.fixture(scope="module")
def control(
    lab_up: Callable[..., LabHost], archive: Archive, tmp_path_factory: pytest.TempPathFactory
) -> Controller:
    host = lab_up()
    archive.give(host.root, f"{archive.cuda}/debian12/x86_64/ /")
    controller = Controller(tmp_path_factory.mktemp("control"), host)
    controller.shell("apt-get update -qq")
    return controller


def test_the_meta_package_of_an_old_branch_brings_the_newest_driver_unless_pinned(
    control: Controller,
) -> None:
    simulated = "apt-get -s install --no-install-recommends {} | grep '^Inst nvidia-driver ' || true"
    assert "(620." in control.shell(simulated.format("nvidia-open-580"))
    control.shell("apt-get install -qq -y nvidia-driver-pinning-580 >/dev/null")
    assert "(580.126.20" in control.shell(simulated.format("nvidia-open"))


def test_a_driver_of_the_archive_is_built_loaded_and_moved(control: Controller) -> None:
    quiet = "DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends --allow-downgrades"
    control.shell(f"{quiet} nvidia-driver-pinning-580 nvidia-persistenced >/dev/null")
    control.shell(f"{quiet} nvidia-open nvidia-persistenced >/dev/null 2>&1")
    kernel = control.shell("ls /lib/modules").strip()
    assert f"nvidia/580.126.20, {kernel}, x86_64: installed" in control.shell("dkms status")
    control.shell("modprobe nvidia")
    assert "580.126.20" in control.shell("nvidia-smi --query-gpu=driver_version --format=csv,noheader")
    assert "Open Kernel Module" in control.shell("cat /proc/driver/nvidia/version")
    control.shell(f"{quiet} nvidia-driver-pinning-595 >/dev/null 2>&1")
    control.shell(f"{quiet} nvidia-open nvidia-persistenced >/dev/null 2>&1")
    assert control.shell("dkms status").strip() == f"nvidia/595.71.05, {kernel}, x86_64: installed"
    assert "Driver/library version mismatch" in control.shell("nvidia-smi || true")


def test_a_toolkit_brings_its_alternative_and_no_driver(control: Controller) -> None:
    told = control.shell(
        "apt-get install -qq -y --no-install-recommends cuda-toolkit-12-8 cuda-toolkit-13-0 2>&1"
    )
    assert "nvidia-" not in told
    assert "release 13.0" in control.shell("/usr/local/cuda/bin/nvcc --version")
    assert "release 12.8" in control.shell("/usr/local/cuda-12/bin/nvcc --version")
    # The meta package with the toolkit's bare name brings a driver.
    assert "Inst cuda-drivers" in control.shell("apt-get -s install cuda-12-8 2>&1 || true")
