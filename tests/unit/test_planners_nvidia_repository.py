"""NVIDIA's repository on a host: its entry, key and pin, what an administrator has already, and who else asks."""

# ruff: noqa: E501

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any

import pytest
from planner_host import MISSING, facts, profile, said, stack, text

from provision.facts.known import Unknown
from provision.planners import nvidia_repository as planner

ADDRESS = "https://developer.download.nvidia.com/compute/cuda/repos/debian12/x86_64"
KEYRING = "/usr/share/keyrings/cuda-archive-keyring.gpg"
LIST = "file:/etc/apt/sources.list.d/cuda-debian12-x86_64.list"
KEY = "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nmQ==\n-----END PGP PUBLIC KEY BLOCK-----\n"


def driver(**more: Any) -> Any:
    return stack(source="nvidia", branch=580, version="580.95.05", pin_by="pinning-package", **more).driver


def repository(items: dict[str, Any] | None = None, **variables: Any) -> planner.Repository:
    return planner.repository(facts(items=items or {}), profile(**variables), driver())


def files(found: planner.Repository) -> dict[str, str | None]:
    return {file.path: file.text for file in found.files}


def test_a_host_that_does_not_know_it_gets_entry_key_and_pin() -> None:
    found = repository()
    assert f"URIs: {ADDRESS}/\nSuites: /\nSigned-By: {planner.KEYRING}\n" in str(files(found)[planner.SOURCE])
    [key] = found.keys
    assert key.urls == (f"{ADDRESS}/3bf863cc.pub", f"{ADDRESS}/8793F200.pub")
    assert "EB693B3035CD5710E231E123A4B469963BF863CC" in key.fingerprints
    assert found.steps == (f"fetch the key of {ADDRESS}",)


def test_the_key_is_fetched_once() -> None:
    assert repository({f"file:{planner.KEYRING}": text(KEY)}).steps == ()


def test_a_mirror_with_a_key_of_its_own_fetches_nothing() -> None:
    found = repository(
        nvidia_driver_repository="http://mirror.example/cuda/", nvidia_driver_repository_key=KEY.rstrip()
    )
    assert files(found)[planner.KEYRING] == KEY
    assert "URIs: http://mirror.example/cuda/debian12/x86_64/\n" in str(files(found)[planner.SOURCE])
    assert not found.keys


@pytest.mark.parametrize("line", [f"deb [signed-by={KEYRING}] {ADDRESS}/ /", f"deb {ADDRESS} ./"])
def test_an_administrators_entry_is_used_and_ours_goes(line: str) -> None:
    found = repository({LIST: text(line + "\n")})
    assert (files(found)[planner.SOURCE], files(found)[planner.KEYRING]) == (None, None)
    assert files(found)[planner.PIN]
    assert not found.keys


def test_two_entries_with_two_keys_are_refused_by_name() -> None:
    found = repository(
        {
            LIST: text(f"deb [signed-by={KEYRING}] {ADDRESS}/ /\n"),
            "file:/etc/apt/sources.list.d/x.list": text(f"deb {ADDRESS}/ /\n"),
        }
    )
    assert "cuda-debian12-x86_64.list:1 and /etc/apt/sources.list.d/x.list:1 name" in str(found.refused)


def test_our_own_entry_is_no_stranger() -> None:
    own = {f"file:{planner.SOURCE}": text(planner.source_text(ADDRESS)), f"file:{planner.KEYRING}": text(KEY)}
    assert files(repository(own)) == files(repository())


def test_a_distribution_or_machine_without_a_repository_is_told() -> None:
    arm = {"uname": said("Linux gpu01 6.12.1 #1 SMP Debian aarch64 GNU/Linux\n")}
    assert "NVIDIA has no repository for Debian 12 on aarch64" in str(repository(arm).refused)
    assert isinstance(planner.address_of(facts(items={"os-release": {"denied": True}}), profile()), Unknown)


def test_the_pin_keeps_the_branch_or_the_release_that_was_named() -> None:
    assert "Pin: version 580.*\nPin-Priority: 1000\n" in planner.pin_text(driver())
    assert "Pin: version 580.95.05-*\nPin-Priority: 1001\n" in planner.pin_text(driver(), "580.95.05")


def test_beside_a_driver_of_the_distribution_nvidias_is_kept_away() -> None:
    debians = stack().driver
    assert debians is not None
    assert planner.kept_away(facts(), profile(), debians) == ()
    [pin] = planner.kept_away(facts(items={LIST: text(f"deb {ADDRESS}/ /\n")}), profile(), debians)
    assert "Pin: release l=NVIDIA CUDA\nPin-Priority: -1\n" in str(pin.text)
    assert "Package: *\nPin: release l=NVIDIA CUDA\nPin-Priority: 600\n" in str(pin.text)


@pytest.mark.parametrize(
    ("name", "is_drivers"),
    [
        ("libnvidia-ml1", True), ("libnvidia-compute-580", True), ("libnvidia-cfg1", True), ("nvidia-kernel-open-dkms", True), ("cuda-drivers", True),
        ("libnvidia-container1", False), ("libnvidia-container-tools", False), ("nvidia-container-toolkit", False), ("cuda-toolkit-13-0", False),
        ("libnccl2", False), ("nvidia-cuda-toolkit", False), ("nvlsm", False),
    ],
)  # fmt: skip
def test_what_the_pin_names(name: str, is_drivers: bool) -> None:
    assert any(fnmatchcase(name, pattern) for pattern in planner.data()["driver_packages"]) is is_drivers


def test_a_host_whose_sources_are_not_known_is_refused() -> None:
    unread = {"file:/etc/apt/sources.list": {"denied": True}}
    assert "apt's sources cannot be read" in str(repository(unread).refused)
    assert repository({"file:/etc/apt/sources.list": MISSING}).refused is None
