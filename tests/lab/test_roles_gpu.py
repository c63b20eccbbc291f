"""The roles nvidia_driver, gpu_settings and nccl by plain ansible-playbook on lab hosts."""

# ruff: noqa: E501

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from plays import Controller, changes

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from provision.lab import LabHost

BUILD_SECONDS = 3600
# Debian's sources as one line each (12) or as a deb822 file (13).
ONLY_MAIN = (
    "for f in /etc/apt/sources.list /etc/apt/sources.list.d/debian.sources; do "
    "[ ! -e $f ] || sed -i 's/ main .*/ main/; s/^Components: main.*/Components: main/' $f; done; apt-get update -qq"
)


@pytest.fixture(scope="module")
def bare(lab_up: Callable[..., LabHost]) -> LabHost:
    return lab_up()


@pytest.fixture
def control(bare: LabHost, tmp_path: Path) -> Controller:
    return Controller(tmp_path, bare)


def play(controller: Controller, role: str, *, check: bool = False, **variables: Any) -> tuple[int, str, int]:
    """Exit status, output and the number of changes of one role."""
    running = controller.start({"role": role}, extra=variables, check=check)
    output, _ = running.process.communicate(timeout=BUILD_SECONDS)
    changed = re.search(r"changed=(\d+)", output)
    return running.process.returncode, output, int(changed[1]) if changed else -1


def test_nccl_writes_this_hosts_network_and_has_nothing_to_do_after(control: Controller) -> None:
    before = changes(control.host)
    status, output, _ = play(control, "nccl", check=True)
    assert status == 0, output
    assert changes(control.host) == before
    status, output, changed = play(control, "nccl", nccl_variables={"NCCL_IB_TIMEOUT": 22})
    assert (status, changed) == (0, 1), output
    text = control.shell("cat /etc/nccl.conf")
    assert "NCCL_SOCKET_IFNAME==host0\n" in text
    assert "NCCL_IB_TIMEOUT=22\n" in text
    after = changes(control.host)
    status, output, changed = play(control, "nccl", nccl_variables={"NCCL_IB_TIMEOUT": 22})
    assert (status, changed) == (0, 0), output
    assert changes(control.host) == after


def test_nccl_refuses_a_foreign_interface_that_is_not_there(control: Controller) -> None:
    control.shell("echo NCCL_SOCKET_IFNAME=eth7 > /etc/nccl.conf")
    status, output, changed = play(control, "nccl")
    assert status != 0
    assert changed == 0
    assert "this host has no such interface" in output
    assert control.shell("cat /etc/nccl.conf") == "NCCL_SOCKET_IFNAME=eth7\n"


@pytest.mark.parametrize(
    ("role", "variables", "says"),
    [
        ("nvidia_driver", {"nvidia_driver_source": "nvidia", "nvidia_driver_repository": "http://127.0.0.1:9/cuda"},
         "No key could be fetched; nothing was changed"),
        ("nvidia_driver", {"nvidia_driver_source": "debian", "nvidia_driver_branch": 470,
                           "nvidia_driver_modules": "open"}, "no set of versions satisfies"),
        ("gpu_settings", {}, "the role nvidia_driver brings it"),
        ("gpu_settings", {"gpu_settings_clocks": "fast"}, "it can be none, max, base"),
    ],
)  # fmt: skip
def test_a_refusal_is_the_planners_own_words_and_changes_nothing(
    control: Controller, role: str, variables: dict[str, Any], says: str
) -> None:
    before = changes(control.host)
    status, output, changed = play(control, role, **variables)
    assert status != 0
    assert changed == 0
    assert says in " ".join(output.split())
    assert changes(control.host) == before


def test_the_drivers_check_mode_changes_nothing(control: Controller) -> None:
    before = changes(control.host)
    status, output, _ = play(control, "nvidia_driver", check=True, nvidia_driver_source="debian")
    assert status == 0, output
    assert changes(control.host) == before
    # The same where apt's sources leave the driver's parts out, so that nothing can be simulated yet.
    control.shell(ONLY_MAIN)
    before = changes(control.host)
    status, output, _ = play(control, "nvidia_driver", check=True, nvidia_driver_source="debian")
    assert status == 0, output
    assert changes(control.host) == before


@pytest.mark.full
@pytest.mark.full  # test_bootstrap has the same builds, by the whole command
@pytest.mark.parametrize(("release", "gpus"), [("bookworm", "A100-SXM4-80GB:2"), ("trixie", "T4:1")])
def test_a_real_driver_is_built_loaded_and_set(
    lab_up: Callable[..., LabHost], tmp_path: Path, release: str, gpus: str
) -> None:
    host = lab_up(release=release, gpus=gpus)
    controller = Controller(tmp_path, host)
    # As on a fresh server: nothing but main, and the driver's parts of the archive are to be added.
    controller.shell(ONLY_MAIN)
    status, output, _ = play(controller, "nvidia_driver", nvidia_driver_source="debian")
    assert status == 0, output
    assert "Components: contrib non-free non-free-firmware" in controller.shell(
        "cat /etc/apt/sources.list.d/gpu-provision.sources"
    )
    kernel = controller.shell("ls /lib/modules").strip()
    assert f", {kernel}, x86_64: installed" in controller.shell("dkms status")
    assert "nvidia-smi" in controller.shell("apt-mark showhold").split()
    assert "GPU 0:" in controller.shell("nvidia-smi -L")
    for role, variables in (("gpu_settings", {"gpu_settings_clocks": "max"}), ("nccl", {})):
        before = changes(host)
        status, output, _ = play(controller, role, check=True, **variables)
        assert status == 0, output
        assert changes(host) == before
        status, output, _ = play(controller, role, **variables)
        assert status == 0, output
    assert "Enabled" in controller.shell("nvidia-smi --query-gpu=persistence_mode --format=csv,noheader")
    before = changes(host)
    for role, variables in (("nvidia_driver", {"nvidia_driver_source": "debian"}),
                            ("gpu_settings", {"gpu_settings_clocks": "max"}), ("nccl", {})):  # fmt: skip
        status, output, changed = play(controller, role, **variables)
        assert (status, changed) == (0, 0), output
    assert changes(host) == before
