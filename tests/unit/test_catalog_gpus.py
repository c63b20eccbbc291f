"""GPUs are found by what nvidia-smi prints, by what people say and by PCI id, and never guessed."""

from __future__ import annotations

import pytest

from provision.catalog import PciId, UnknownGpu, find
from provision.errors import Usage


@pytest.mark.parametrize(
    ("asked", "device", "architecture", "capability", "modules"),
    [
        ("NVIDIA A100-SXM4-80GB", "20b2", "Ampere", "8.0", ("proprietary", "open")),
        ("A100-SXM4-80GB", "20b2", "Ampere", "8.0", ("proprietary", "open")),
        ("a100 sxm4 80gb", "20b2", "Ampere", "8.0", ("proprietary", "open")),
        ("10de:20b2", "20b2", "Ampere", "8.0", ("proprietary", "open")),
        ("10DE:20B2", "20b2", "Ampere", "8.0", ("proprietary", "open")),
        ("0x10de:0x20b2", "20b2", "Ampere", "8.0", ("proprietary", "open")),
        ("20B210DE", "20b2", "Ampere", "8.0", ("proprietary", "open")),
        ("Tesla T4", "1eb8", "Turing", "7.5", ("proprietary", "open")),
        ("T4", "1eb8", "Turing", "7.5", ("proprietary", "open")),
        ("NVIDIA GeForce RTX 3090", "2204", "Ampere", "8.6", ("proprietary", "open")),
        ("RTX 3090", "2204", "Ampere", "8.6", ("proprietary", "open")),
        ("rtx3090", "2204", "Ampere", "8.6", ("proprietary", "open")),
        ("NVIDIA H100 80GB HBM3", "2330", "Hopper", "9.0", ("proprietary", "open")),
        ("NVIDIA GH200 480GB", "2342", "Hopper", "9.0", ("open",)),
        ("NVIDIA B200", "2901", "Blackwell", "10.0", ("open",)),
        ("Tesla V100-SXM2-32GB", "1db5", "Volta", "7.0", ("proprietary",)),
        ("Tesla K80", "102d", "Kepler", "3.7", ("proprietary",)),
        ("NVIDIA GeForce GT 1030", "1d01", "Pascal", "6.1", ("proprietary",)),
    ],
)
def test_found(asked: str, device: str, architecture: str, capability: str, modules: tuple[str, ...]) -> None:
    gpu = find(asked)
    assert (gpu.device, gpu.architecture, gpu.cc, gpu.modules) == (device, architecture, capability, modules)


def test_a_pci_id_as_a_host_reports_it() -> None:
    assert find(PciId("10de", "1DB5")).name.startswith("Tesla V100-SXM2-32GB")


@pytest.mark.parametrize(
    ("asked", "first"),
    [
        # V100s differ in nothing; of the H100s the one that drivers learnt of last decides.
        ("V100", "384"),
        ("H200", "550.40.65"),
        ("L40", "525.47.06"),
    ],
)
def test_a_short_name_stands_for_the_strictest_of_its_kind(asked: str, first: str) -> None:
    assert find(asked).first[0] == first


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ("RTX 3091", "Nearest: .*RTX 3090"),
        ("A1OO-SXM4-80GB", "Nearest: .*A100-SXM4-80GB"),
        ("Voodoo 2", "Nearest|lists all of them"),
        ("10de:ffff", "may be newer than the catalog"),
        ("1002:73bf", "not an NVIDIA device"),
        ("***", "no GPU name"),
    ],
)
def test_what_is_unknown_is_named_and_not_guessed(asked: str, says: str) -> None:
    with pytest.raises(UnknownGpu, match=says) as caught:
        find(asked)
    assert caught.value.exit_code == 2


def test_a_name_of_different_kinds_is_asked_back() -> None:
    with pytest.raises(Usage, match=r"different GPUs(.|\n)*10de:"):
        find("GeForce RTX")
