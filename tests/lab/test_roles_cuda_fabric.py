"""The roles cuda and fabric on boards with NVSwitches, from the tests' own archive: what they leave behind."""

# ruff: noqa: E501

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from plays import Controller, changes

from provision.planners import cuda, fabric

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from archive.served import Archive

    from provision.lab import LabHost

QUIET = "DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends --allow-downgrades"
BOTH: dict[str, Any] = {"cuda_versions": ["13.0", "12.8"], "cuda_cudnn": "9", "cuda_nccl": "2"}
# apt runs this before it fetches lists, whoever asks it to.
COUNT = 'APT::Update::Pre-Invoke { "echo x >> /run/fetches"; };'
STATES = "nvidia-smi --query-gpu=fabric.state --format=csv,noheader | sort -u"


class Board:
    """A lab host that has the archive as its NVIDIA repository."""

    def __init__(self, controller: Controller, archive: Archive) -> None:
        self.controller = controller
        self.variables = {"nvidia_driver_source": "nvidia", "nvidia_driver_repository": archive.cuda}

    def role(self, name: str, **variables: Any) -> tuple[int, str]:
        """The exit status of a play of one role, and its output in one line."""
        status, output = self.controller.role(name, **{**self.variables, **variables})
        return status, " ".join(output.split())

    def make(self, name: str, **variables: Any) -> None:
        status, output = self.role(name, **variables)
        assert status == 0, output

    def unchanged(self, *plays: tuple[str, dict[str, Any]]) -> None:
        """Playing these again changes no file of the host."""
        before = changes(self.controller.host)
        for name, variables in plays:
            status, output = self.role(name, **variables)
            assert status == 0, output
            assert "changed=0" in output, output
        assert changes(self.controller.host) == before

    def shell(self, command: str) -> str:
        return self.controller.shell(command).strip()

    def version(self, package: str) -> str:
        return self.shell(f"dpkg-query -W -f='${{Version}}' {package}")


@pytest.fixture(scope="module")
def boards(
    lab_up: Callable[..., LabHost], archive: Archive, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., Board]:
    def make(gpus: str = "H100:8", *, driver: bool = True) -> Board:
        host = lab_up(gpus=gpus)
        archive.give(host.root, f"{archive.cuda}/debian12/x86_64/ /")
        board = Board(Controller(tmp_path_factory.mktemp("control"), host), archive)
        board.shell("apt-get update -qq")
        if driver:
            board.shell(f"{QUIET} nvidia-driver-pinning-580 >/dev/null 2>&1")
            board.shell(f"{QUIET} nvidia-open nvidia-persistenced >/dev/null 2>&1; modprobe nvidia")
        return board

    return make


@pytest.fixture(scope="module")
def board(boards: Callable[..., Board]) -> Board:
    return boards()


def test_the_fabric_comes_up_and_toolkits_stand_side_by_side(board: Board) -> None:
    assert board.shell(STATES) == "In Progress"
    board.make("fabric")
    assert board.shell(STATES) == "Completed"
    release = board.shell("cat /sys/module/nvidia/version")
    assert board.version("nvidia-fabricmanager") == f"{release}-1"
    assert board.shell(f"systemctl is-enabled {fabric.UNIT}") == "enabled"
    board.shell(f"echo '{COUNT}' > /etc/apt/apt.conf.d/99count")
    board.make("cuda", **BOTH)
    # One fetch after our pin was written, and not one for each task.
    assert board.shell("cat /run/fetches").count("x") == 1
    assert "release 13.0" in board.shell("bash -lc 'nvcc --version'")
    assert "release 12.8" in board.shell("/usr/local/cuda-12.8/bin/nvcc --version")
    assert "Status: manual" in board.shell("update-alternatives --query cuda")
    held = set(board.shell("apt-mark showhold").split())
    assert {"libcudnn9-cuda-13", "libcudnn9-headers-cuda-13", "libnccl2", "libnccl-dev"} <= held
    assert "nvidia-fabricmanager" in held
    assert "+cuda13." in board.version("libnccl2")
    # Toolkits bring no driver: the release is the one that was there.
    assert board.version("libcuda1") == f"{release}-1"
    board.unchanged(("fabric", {}), ("cuda", BOTH))


@pytest.mark.full
def test_another_default_then_a_removal_then_no_toolkit_at_all(board: Board) -> None:
    board.make("cuda", **BOTH)
    other: dict[str, Any] = {**BOTH, "cuda_versions": ["12.8", "13.0"]}
    status, output = board.role("cuda", **other)
    assert status != 0
    named = ["libcudnn9-cuda-13", "libcudnn9-dev-cuda-13", "libcudnn9-headers-cuda-13"]
    assert f"cuda_absent: [{', '.join(named)}]" in output
    other["cuda_absent"] = named
    board.make("cuda", **other)
    assert "release 12.8" in board.shell("/usr/local/cuda/bin/nvcc --version")
    assert "+cuda12." in board.version("libnccl2")
    board.unchanged(("cuda", other))
    only: dict[str, Any] = {"cuda_versions": ["12.8"], "cuda_absent": ["13.0"]}
    board.make("cuda", **only)
    assert board.shell("ls -d /usr/local/cuda-13.0 2>/dev/null || echo none") == "none"
    board.unchanged(("cuda", only))
    none: dict[str, Any] = {"cuda_absent": ["12.8"]}
    board.make("cuda", **none)
    assert not [path for path in cuda.TEXTS if (board.controller.host.root / path.lstrip("/")).exists()]
    board.unchanged(("cuda", none))


@pytest.mark.full
def test_a_toolkit_of_the_run_installer_is_adopted(boards: Callable[..., Board]) -> None:
    host = boards(driver=False)
    folder = host.controller.host.root / "usr/local/cuda-12.8"
    (folder / "bin").mkdir(parents=True)
    (folder / "version.json").write_text('{"cuda": {"version": "12.8.1"}}')
    (folder / "bin/nvcc").write_text("#!/bin/sh\necho theirs\n")
    (folder / "bin/nvcc").chmod(0o755)
    host.shell("ln -s /usr/local/cuda-12.8 /usr/local/cuda")
    asked: dict[str, Any] = {"cuda_versions": ["12.8", "13.0"]}
    host.make("cuda", **asked)
    assert host.shell("bash -lc nvcc") == "theirs"
    assert "cuda-toolkit-12-8\n" not in host.shell("dpkg-query -W -f='${Package}\\n'")
    host.unchanged(("cuda", asked))
    status, output = host.role("cuda", cuda_versions=["12.8.0"])
    assert status != 0
    assert "cuda-uninstaller" in output


@pytest.mark.full
def test_a_fabric_manager_of_another_release_is_brought_to_the_drivers(boards: Callable[..., Board]) -> None:
    host = boards()
    host.make("fabric")
    host.shell(f"apt-mark unhold nvidia-fabricmanager; {QUIET} nvidia-fabricmanager=580.95.05-1 2>&1")
    host.shell(f"systemctl restart {fabric.UNIT}; sleep 1")
    assert host.shell(STATES) == "In Progress"
    host.make("fabric")
    assert host.shell(STATES) == "Completed"
    assert "nvidia-fabricmanager" in host.shell("apt-mark showhold")


@pytest.mark.full
def test_a_board_of_nvlink_5_gets_its_subnet_manager(boards: Callable[..., Board]) -> None:
    host = boards("B200:8")
    host.make("fabric")
    assert host.shell(STATES) == "Completed"
    assert "ib_umad" in host.shell(f"cat {fabric.MODULES}")
    assert host.version("nvlsm")
    host.unchanged(("fabric", {}))


@pytest.mark.full
def test_debians_own_toolkit_passes_its_simulation_and_check_mode_changes_nothing(
    lab_up: Callable[..., LabHost], tmp_path: Path
) -> None:
    """Only in check mode: the real one is 1.6 GB to fetch."""
    controller = Controller(tmp_path, lab_up(gpus="T4:1"))
    before = changes(controller.host)
    status, output = controller.role(
        "cuda", check=True, nvidia_driver_source="debian", cuda_versions=["11.8"]
    )
    assert status == 0, output
    assert changes(controller.host) == before
