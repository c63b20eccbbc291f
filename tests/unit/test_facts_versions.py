"""Versions are compared by dpkg's rules and NVIDIA's numbers, never as strings."""

from __future__ import annotations

import itertools
import random
import shutil
import subprocess

import pytest

from provision.facts.versions import (
    branch,
    compare_debian,
    debian_key,
    driver_tuple,
    driver_version,
    same_driver,
    upstream,
)

# Oldest first, by `dpkg --compare-versions`.
ORDERED = (
    "1.0~~",
    "1.0~rc1-1",
    "1.0~rc1-2",
    "1.0",
    "1.0-1~bpo12+1",
    "1.0-1",
    "1.0-1ubuntu1",
    "1.0-1+b1",
    "1.0a-1",
    "1.0+dfsg-1",
    "1.0.1-1",
    "1.2-1",
    "1.10-1",
    "535.183.01-1~deb12u1",
    "535.183.01-1",
    "580.95.05-0ubuntu0.24.04.2",
    "580.95.05-0ubuntu1",
    "580.95.05-1",
    "580.95.05-1ubuntu1",
    "580.126.09-1",
    "580.1260.9-1",
    "1:0.1-1",
    "2:0.1-1",
)


def test_order() -> None:
    for older, newer in itertools.combinations(ORDERED, 2):
        assert compare_debian(older, newer) == -1, f"{older} < {newer}"
        assert compare_debian(newer, older) == 1, f"{newer} > {older}"


@pytest.mark.parametrize(
    ("a", "b"), [("1.0", "1.0-0"), ("0:1.0-1", "1.0-1"), ("1.02-1", "1.2-1"), ("1.0", "1.0")]
)
def test_equal(a: str, b: str) -> None:
    assert compare_debian(a, b) == 0


def test_sorting() -> None:
    mixed = list(ORDERED)
    random.Random(7).shuffle(mixed)
    assert sorted(mixed, key=debian_key) == list(ORDERED)


@pytest.mark.skipif(shutil.which("dpkg") is None, reason="the order is held against dpkg's own where dpkg is")
def test_the_same_as_dpkg() -> None:
    chance = random.Random(11)
    pieces = ["0", "1", "10", "02", "580", ".", "-", "~", "+", "a", "rc", "ubuntu", ":"]
    for _ in range(120):
        a, b = ("".join([str(chance.randrange(3)), *chance.choices(pieces, k=5)]) for _ in range(2))
        if subprocess.run(["dpkg", "--validate-version", a], capture_output=True).returncode:
            continue
        if subprocess.run(["dpkg", "--validate-version", b], capture_output=True).returncode:
            continue
        asked = [
            subprocess.run(["dpkg", "--compare-versions", a, op, b], check=False).returncode == 0
            for op in ("lt", "eq", "gt")
        ]
        assert asked == [compare_debian(a, b) == n for n in (-1, 0, 1)], f"{a} and {b}"


def test_a_number_longer_than_python_reads() -> None:
    assert compare_debian("1." + "9" * 5000, "1." + "9" * 5001) == -1


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("3:580.95.05-0ubuntu1", "580.95.05"),
        ("580.95.05", "580.95.05"),
        ("9.20.0.48-1", "9.20.0.48"),
        ("2.30.4-1+cuda12.9", "2.30.4"),
        ("1:4.5.2", "4.5.2"),
        ("1.0-rc1-2", "1.0-rc1"),
    ],
)
def test_upstream(version: str, expected: str) -> None:
    assert upstream(version) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("580.95.05", (580, 95, 5)),
        ("1:610.57.04-1", (610, 57, 4)),
        ("610.57.04 [Deprecated; will be removed in CUDA 14.0. Use KMD Version instead]", (610, 57, 4)),
        ("418.43", (418, 43)),
        ("580.178", (580, 178)),
        ("13.0", None),
        ("580", None),
        ("100.64.0.1", None),
        ("", None),
    ],
)
def test_driver_tuple(text: str, expected: tuple[int, ...] | None) -> None:
    assert driver_tuple(text) == expected


def test_driver_versions_are_numbers() -> None:
    assert driver_tuple("580.126.09") > driver_tuple("580.95.05")  # type: ignore[operator]
    assert branch("580.126.09-1") == 580
    assert branch("no driver") is None
    says = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.173.02  Tue Jun 23 08:38:17 UTC 2026"
    assert driver_version(says) == "580.173.02"


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        ("580.178.04", "580.178", True),  # NVML names two of the three parts
        ("3:580.95.05-0ubuntu1", "580.95.05-1", True),
        ("580.95.05", "580.95.15", False),
        ("580.173.02", "580.178", False),
        ("580.95.05", "none", False),
    ],
)
def test_same_driver(a: str, b: str, same: bool) -> None:
    assert same_driver(a, b) is same
    assert same_driver(b, a) is same
