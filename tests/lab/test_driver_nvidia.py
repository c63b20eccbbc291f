"""The role nvidia_driver with NVIDIA's repository: installed, moved over branches, adopted, refused."""

# ruff: noqa: E501

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from plays import Controller

from plugins.module_utils import openpgp

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from archive.served import Archive

    from provision.lab import LabHost

SET = {
    "nvidia-driver-cuda", "nvidia-kernel-support", "firmware-nvidia-gsp", "nvidia-modprobe", "nvidia-persistenced",
    "libcuda1", "libnvidia-ml1", "libnvidia-cfg1", "libnvidia-ptxjitcompiler1",
}  # fmt: skip
OPEN, PROPRIETARY = "nvidia-kernel-open-dkms", "nvidia-kernel-dkms"
SECONDS = 600


class Host:
    """One lab host that the role is played against, with the archive as NVIDIA's repository."""

    def __init__(self, control: Controller, archive: Archive) -> None:
        self.control, self.archive = control, archive
        self.shell = control.shell

    def play(self, *, check: bool = False, **variables: Any) -> tuple[int, str, int]:
        """Exit status, output and the number of changes of the role."""
        given = {
            "nvidia_driver_repository": self.archive.cuda,
            "nvidia_driver_repository_key": self.archive.key,
            **{f"nvidia_driver_{name}": value for name, value in variables.items()},
        }
        running = self.control.start({"role": "nvidia_driver"}, extra=given, check=check)
        output, _ = running.process.communicate(timeout=SECONDS)
        changed = re.search(r"changed=(\d+)", output)
        return running.process.returncode, output, int(changed[1]) if changed else -1

    def installed(self) -> dict[str, str]:
        """Versions of the driver's packages by name."""
        listed = self.shell("dpkg-query -W -f='${db:Status-Abbrev}\\t${Package}\\t${Version}\\n'")
        rows = [line.split("\t") for line in listed.splitlines()]
        found = {name: version for status, name, version in rows if status[1] == "i"}
        return {n: v for n, v in found.items() if re.search(r"nvidia|^libcuda1$|cuda-drivers", n)}

    def is_exactly(self, release: str, modules: str) -> None:
        """Packages, holds, pin, module of each kernel and the way it is loaded are the set's, and no more."""
        pin = f"nvidia-driver-pinning-{release.partition('.')[0]}"
        there = self.installed()
        assert set(there) == {*SET, modules, pin}, there
        assert {version for name, version in there.items() if name != pin} == {f"{release}-1"}
        assert set(self.shell("apt-mark showhold").split()) == set(there)
        for kernel in self.shell("ls /lib/modules").split():
            assert f"nvidia/{release}, {kernel}, x86_64: installed" in self.shell("dkms status")
            told = self.shell(f"modinfo -k {kernel} -F version nvidia; modinfo -k {kernel} -F license nvidia")
            assert told.split("\n")[:2] == [release, "Dual MIT/GPL" if modules == OPEN else "NVIDIA"]
        assert self.shell("dkms status").count("installed") == len(self.shell("ls /lib/modules").split())
        assert self.shell("apt-get -s upgrade | grep -c '^Inst.*nvidia' || true").strip() == "0"
        origins = self.shell(
            f"apt-cache policy {' '.join(SET)} | grep -A1 '^ \\*\\*\\*' | grep -c {self.archive.url} || true"
        )
        assert int(origins) == len(SET)


@pytest.fixture(scope="module")
def made(lab_up: Callable[..., LabHost]) -> LabHost:
    return lab_up()


@pytest.fixture
def host(made: LabHost, archive: Archive, tmp_path: Path) -> Host:
    return Host(Controller(tmp_path, made), archive)


def test_a_bare_host_gets_the_branch_that_is_named_and_nothing_more_after(host: Host) -> None:
    status, output, _ = host.play(branch=580)
    assert status == 0, output
    host.is_exactly("580.126.20", OPEN)
    assert "580.126.20" in host.shell("nvidia-smi --query-gpu=driver_version --format=csv,noheader")
    # Without the branch's being named it stays: it is supported and serves the cards.
    status, output, changed = host.play()
    assert (status, changed) == (0, 0), output


def test_the_host_moves_to_a_newer_branch(host: Host) -> None:
    status, output, _ = host.play(branch=595)
    assert status == 0, output
    host.is_exactly("595.71.05", OPEN)


@pytest.mark.full
def test_a_lifted_hold_is_held_again_and_going_back_has_to_be_named(host: Host) -> None:
    before = host.installed()
    status, output, _ = host.play(version="580.95.05", check=True)
    assert status == 0, output
    assert host.installed() == before
    host.shell("apt-mark unhold nvidia-driver-cuda >/dev/null")
    status, output, changed = host.play()
    assert (status, changed) == (0, 1), output
    host.is_exactly("595.71.05", OPEN)
    status, output, _ = host.play(version="580.95.05")
    assert status == 0, output
    host.is_exactly("580.95.05", OPEN)


@pytest.mark.full
def test_the_flavour_changes_in_one_transaction(host: Host) -> None:
    status, output, _ = host.play(version="580.95.05", modules="proprietary")
    assert status == 0, output
    host.is_exactly("580.95.05", PROPRIETARY)
    status, output, changed = host.play(version="580.95.05", modules="proprietary")
    assert (status, changed) == (0, 0), output


@pytest.mark.full
def test_the_long_term_branch_leaves_the_proprietary_modules_behind(host: Host) -> None:
    status, output, _ = host.play(branch=620)
    assert status == 0, output
    host.is_exactly("620.70.06", OPEN)


@pytest.mark.full
def test_packages_of_two_sources_are_refused_until_one_is_named(host: Host) -> None:
    host.shell("apt-get install -qq -y nvidia-legacy-check >/dev/null 2>&1")
    status, output, changed = host.play()
    assert (status, changed) == (2, 0), output
    assert "more than one source" in output
    assert "debian: nvidia-legacy-check" in output
    status, output, _ = host.play(source="nvidia", branch=620)
    assert status == 0, output
    # It came with Debian's package, and is no part of a driver.
    host.shell("apt-get purge -qq -y nvidia-installer-cleanup >/dev/null 2>&1")
    host.is_exactly("620.70.06", OPEN)


@pytest.mark.full
def test_what_the_run_installer_left_is_refused_with_the_way_out(host: Host) -> None:
    host.shell("touch /usr/bin/nvidia-uninstall")
    status, output, changed = host.play()
    host.shell("rm /usr/bin/nvidia-uninstall")
    assert (status, changed) == (2, 0), output
    assert "nvidia-uninstall" in output


@pytest.mark.full
def test_what_did_not_build_is_told_by_kernel_with_the_compilers_first_error(host: Host) -> None:
    """A second kernel whose headers break the build; the first has its module all the same."""
    own = "6.99.0-changed"
    host.shell(
        f"mkdir -p /lib/modules/{own} /usr/src/{own}/include; echo kernel > /boot/vmlinuz-{own};"
        f"echo all: > /usr/src/{own}/Makefile; ln -s /usr/src/{own} /lib/modules/{own}/build;"
        f"echo 'int pci_resize_resource(int);;; nonsense here' > /usr/src/{own}/include/lab-break.h;"
        f"touch /lib/modules/{own}/modules.builtin /lib/modules/{own}/modules.order; depmod {own};"
        f"echo initramfs > /boot/initrd.img-{own}"
    )
    status, output, _ = host.play(branch=580)
    told = " ".join(output.split())
    assert status == 2, output
    assert f"did not build for kernel {own}" in told
    assert "lab-break.h:1:" in told
    assert "error: " in told
    first = next(kernel for kernel in host.shell("ls /lib/modules").split() if kernel != own)
    assert f"nvidia/580.126.20, {first}, x86_64: installed" in host.shell("dkms status")
    # Once the headers are mended the next run finishes what was left.
    host.shell(f"rm /usr/src/{own}/include/lab-break.h")
    status, output, _ = host.play(branch=580)
    assert status == 0, output
    host.is_exactly("580.126.20", OPEN)
    host.shell(
        f"dkms remove nvidia/580.126.20 -k {own}; rm -rf /lib/modules/{own} /usr/src/{own} /boot/*{own}"
    )


@pytest.mark.full
def test_a_key_that_is_not_nvidias_is_not_taken(
    lab_up: Callable[..., LabHost], archive: Archive, tmp_path: Path
) -> None:
    """Without a key of the profile's the role fetches NVIDIA's from the repository, and goes by its fingerprint."""
    host = Host(Controller(tmp_path, lab_up()), archive)
    folder = archive.builder.root / "compute/cuda/repos/debian12/x86_64"
    before = host.shell("find /etc/apt -type f -exec sha256sum {} + | sort")
    asked = {"nvidia_driver_repository": archive.cuda, "nvidia_driver_source": "nvidia"}
    named = folder / "3bf863cc.pub"
    try:
        named.write_text(archive.key)
        running = host.control.start({"role": "nvidia_driver"}, extra=asked)
        output, _ = running.process.communicate(timeout=SECONDS)
    finally:
        named.unlink()
    told = " ".join(output.split())
    assert running.process.returncode == 2, output
    assert "3bf863cc.pub is not the key that was expected: its fingerprint is" in told
    assert "8793F200.pub: " in told
    assert host.shell("find /etc/apt -type f -exec sha256sum {} + | sort") == before
    # The same way with the fingerprint that the key has: it is kept, and apt can use the source.
    fingerprints = openpgp.fingerprints(archive.key)
    keyring = "/etc/apt/keyrings/mirror.asc"
    entry = f"Types: deb\nURIs: {archive.cuda}/debian12/x86_64/\nSuites: /\nSigned-By: {keyring}\n"
    task = {
        "gpu_provision.host.apt_sources": {
            "files": [{"path": "/etc/apt/sources.list.d/mirror.sources", "text": entry}],
            "keys": [{"path": keyring, "urls": [archive.key_url], "fingerprints": fingerprints}],
        }
    }
    assert host.control.run(task)["changed"]
    assert not host.control.run(task)["changed"]
    assert host.shell(f"cat {keyring}") == archive.key
    assert "nvidia-open" in host.shell("apt-cache policy nvidia-open")
