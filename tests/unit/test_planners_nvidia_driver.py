"""Role nvidia_driver: packages, headers, holds and sources of a host, and everything that refuses it."""

# ruff: noqa: E501

from __future__ import annotations

from typing import Any

import pytest
from planner_host import (
    CONVERGED,
    DRIVER,
    KERNEL,
    MISSING,
    PLAIN,
    RELEASE,
    dpkg,
    facts,
    kernel,
    pci,
    policy,
    profile,
    said,
    stack,
    text,
)

from provision.catalog.stack import Conflict, Stack
from provision.facts.known import Unknown
from provision.planners import apt_sources, nvidia_driver

SOURCES = "file:/etc/apt/sources.list"
OURS = "file:/etc/apt/sources.list.d/gpu-provision.sources"


def plan(
    chosen: Any = None, items: dict[str, Any] | None = None, **variables: Any
) -> nvidia_driver.DriverWanted:
    return nvidia_driver.wanted(
        facts(items=items or {}), profile(**variables), stack() if chosen is None else chosen
    )


def bare(**more: Any) -> dict[str, Any]:
    """The plain host before its driver."""
    return {
        "dpkg.list": dpkg(PLAIN), "apt.holds": said(""), "kernels": said([kernel(module=None)]), "lsmod": said("Module Size Used by\n"),
        "pci": pci(None, None), "file:/proc/driver/nvidia/version": MISSING, "file:/sys/module/nvidia/version": MISSING, **more,
    }  # fmt: skip


def test_a_bare_host_gets_exact_packages_headers_holds_and_the_module() -> None:
    planned = plan(items=bare())
    assert planned.refused is None
    assert f"nvidia-smi={RELEASE}-1" in planned.packages
    assert {f"linux-headers-{KERNEL}", "linux-headers-amd64"} <= set(planned.packages)
    assert set(DRIVER) <= set(planned.holds)
    assert (planned.kernels, planned.branch, planned.load, planned.exact) == ((KERNEL,), 535, True, True)


def test_a_converged_host_wants_the_same_and_loads_nothing() -> None:
    before, after = plan(items=bare()), plan()
    assert (before.packages, before.holds, before.files) == (after.packages, after.holds, after.files)
    assert not after.load
    assert {f"build the module for kernel {KERNEL}", "load the module"} <= set(before.steps)


def test_a_set_whose_release_is_not_known_yet_is_not_exact() -> None:
    planned = plan(stack(version=None, pin=()), items=bare())
    assert not planned.exact
    assert "nvidia-smi" in planned.packages


def test_every_kernel_that_can_be_booted_gets_headers_and_a_module() -> None:
    newer = "6.1.0-58-amd64"
    kernels = [
        kernel(),
        kernel(newer, None, headers=False),
        kernel("6.1.0-40-amd64", None, image=False, headers=False),
    ]
    planned = plan(items={"kernels": said(kernels)})
    assert planned.kernels == (KERNEL, newer)
    assert f"linux-headers-{newer}" in planned.packages
    assert not any("6.1.0-40" in name for name in planned.packages)


def test_a_kernel_of_no_package_with_headers_of_its_own_asks_for_none() -> None:
    planned = plan(items={"kernels": said([kernel("6.12.1-own")])})
    assert planned.kernels == ("6.12.1-own",)
    assert "linux-headers-6.12.1-own" not in planned.packages


def test_what_else_is_at_the_drivers_release_is_held_with_it() -> None:
    more = {**CONVERGED, "libnvidia-nvvm4": f"{RELEASE}-1", "nvidia-cuda-toolkit": "11.8.89~11.8.0-5"}
    held = plan(items={"dpkg.list": dpkg(more)}).holds
    assert "libnvidia-nvvm4" in held
    assert "nvidia-cuda-toolkit" not in held


def test_the_other_flavour_is_named_as_in_the_way() -> None:
    other = ("nvidia-open-kernel-dkms", "nvidia-open-kernel-support")
    planned = plan(items={"dpkg.list": dpkg({**CONVERGED, **dict.fromkeys(other, f"{RELEASE}-1")})})
    assert planned.absent == other
    assert "remove nvidia-open-kernel-dkms" in planned.steps


def test_a_flavour_whose_build_failed_is_in_the_way_too() -> None:
    failed = said(dpkg(CONVERGED)["stdout"] + f"iF \tnvidia-open-kernel-dkms\t{RELEASE}-1\tamd64\n")
    assert plan(items={"dpkg.list": failed}).absent == ("nvidia-open-kernel-dkms",)


def test_a_builder_that_failed_for_one_kernel_has_brought_the_others_module() -> None:
    rest = {name: version for name, version in CONVERGED.items() if name != "nvidia-kernel-dkms"}
    half = said(dpkg(rest)["stdout"] + f"iF \tnvidia-kernel-dkms\t{RELEASE}-1\tamd64\n")
    assert plan(items={"dpkg.list": half}).refused is None


LOOSE = said(
    [
        {
            "path": "/usr/lib/x86_64-linux-gnu/libcuda.so.550.54.14",
            "kind": "file",
            "target": None,
            "package": None,
        }
    ]
)


def test_a_containers_libraries_are_its_machines() -> None:
    items = {"nvidia.files": LOOSE, "kernels": said([kernel(image=False)])}
    assert "belongs to its machine" in str(plan(items=items).refused)


@pytest.mark.parametrize(
    ("items", "says"),
    [
        ({"pci": pci()}, "no NVIDIA GPU"),
        ({"pci": pci("vfio-pci", "vfio-pci")}, "vfio-pci"),
        ({"kernels": said([])}, "no kernel is installed"),
        ({"kernels": {"timed_out": True}}, "kernels are not known"),
        ({"dpkg.list": {"denied": True}}, "packages are not known"),
        ({"dpkg.list": dpkg({**CONVERGED, "cuda-drivers": "580.95.05-1"})}, "580.95.05 is installed and 535.261.03 would be"),
        ({"dpkg.list": dpkg({**CONVERGED, "libcuda1": "580.95.05-1"})}, "580.95.05 is installed and 535.261.03 would be"),
        ({"dpkg.list": dpkg({**CONVERGED, "nvidia-linux-grid-580": "580.105.08"})}, "virtual GPU"),
        ({"nvidia.files": said([{"path": "/etc/nvidia/gridd.conf", "kind": "file", "package": None}])}, "virtual GPU"),
        ({"nvidia.files": said([{"path": "/usr/bin/nvidia-uninstall", "kind": "file", "package": None}])}, "nvidia-uninstall"),
        ({"nvidia.files": LOOSE}, "libcuda.so.550.54.14 belongs to no package"),
        ({"dpkg.list": dpkg(PLAIN)}, "that no package brought"),
        ({SOURCES: text("deb http://other.example/x stable main\n"), OURS: MISSING}, "no source of Debian"),
    ],
)  # fmt: skip
def test_what_refuses(items: dict[str, Any], says: str) -> None:
    assert says in str(plan(items=items).refused)


def test_cards_for_virtual_machines_are_left_alone_and_the_others_served() -> None:
    assert plan(items={"pci": pci("vfio-pci", "nvidia")}).refused is None


def test_a_stack_that_is_not_there_or_does_not_fit_refuses() -> None:
    conflict = Conflict(("--driver 470", "A100"), "A100 needs 450 or newer", "drop --driver", "a table")
    assert "A100 needs 450" in str(plan(Stack(False, conflicts=(conflict,))).refused)
    assert "no GPU was seen" in str(plan(Unknown("no GPU was seen")).refused)


def test_two_sources_are_refused_until_one_is_named() -> None:
    mixed = {"dpkg.list": dpkg({**CONVERGED, "cuda-drivers": f"{RELEASE}-1"})}
    refused = str(plan(items=mixed, nvidia_driver_source="auto").refused)
    assert "more than one source" in refused
    assert f"nvidia: cuda-drivers {RELEASE}-1" in refused
    planned = plan(items=mixed)
    assert planned.refused is None
    assert planned.absent == ("cuda-drivers",)


def test_going_back_needs_a_name() -> None:
    newer = {name: version.replace(RELEASE, "535.309.01") for name, version in CONVERGED.items()}
    items = {"dpkg.list": dpkg(newer)}
    assert "would be older" in str(plan(items=items).refused)
    assert plan(items=items, nvidia_driver_version=RELEASE).refused is None


@pytest.mark.parametrize(
    ("changed", "refused"),
    [
        ({}, False),
        ({"secure-boot": said("SecureBoot enabled\n")}, True),
        ({"secure-boot": said("SecureBoot enabled\n"), "secure-boot.dkms-key": said("/var/lib/dkms/mok.pub is already enrolled\n", 1)}, False),
        ({"secure-boot": said("SecureBoot enabled\n"), "secure-boot.dkms-key": said("/var/lib/dkms/mok.pub is not enrolled\n")}, True),
        ({"secure-boot": MISSING}, False),
    ],
)  # fmt: skip
def test_secure_boot_refuses_before_a_module_is_built_that_would_not_load(
    changed: dict[str, Any], refused: bool
) -> None:
    planned = plan(items=bare(**changed))
    assert ("mokutil --import" in str(planned.refused)) is refused


def test_a_loaded_module_has_proven_its_key_unless_it_came_signed() -> None:
    assert plan(items={"secure-boot": said("SecureBoot enabled\n")}).refused is None
    theirs = dpkg({**CONVERGED, f"linux-modules-nvidia-535-server-{KERNEL}": "6.1.0-57.1+1"})
    assert "mokutil" in str(
        plan(
            items={"secure-boot": said("SecureBoot enabled\n"), "dpkg.list": theirs},
            nvidia_driver_source="debian",
        ).refused
    )


def test_a_key_that_is_not_there_is_to_be_made_first() -> None:
    on = {"secure-boot": said("SecureBoot enabled\n")}
    absent = {
        "secure-boot.dkms-key": {
            "rc": 255,
            "stdout": "",
            "stderr": "Failed to get file status, /var/lib/dkms/mok.pub\n",
            "seconds": 0.1,
        }
    }
    told = str(plan(items=bare(**on, **absent)).refused)
    assert told.index("openssl req") < told.index("mokutil --import /var/lib/dkms/mok.pub")
    there = {"secure-boot.dkms-key": said("/var/lib/dkms/mok.pub is not enrolled\n")}
    assert "openssl" not in str(plan(items=bare(**on, **there)).refused)


@pytest.mark.parametrize("driver", ["nouveau", "nova_core", "NovaCore"])
def test_a_rival_that_holds_a_card_needs_a_reboot_first(driver: str) -> None:
    assert not plan(items=bare(pci=pci(driver, None))).load


def test_missing_parts_of_the_archive_go_into_a_file_of_our_own() -> None:
    deb822 = (
        "Types: deb\nURIs: http://deb.example/debian\nSuites: bookworm bookworm-updates\nComponents: main contrib\n"
        "Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg\n\n"
        "Types: deb\nURIs: http://deb.example/debian-security\nSuites: bookworm-security\nComponents: main contrib non-free "
        "non-free-firmware\nSigned-By: /usr/share/keyrings/debian-archive-keyring.gpg\n"
    )
    host = facts(items={SOURCES: MISSING, "file:/etc/apt/sources.list.d/debian.sources": text(deb822)})
    added = apt_sources.archive(host).text
    assert added is not None
    assert added.count("Types: deb") == 1
    assert (
        "URIs: http://deb.example/debian\nSuites: bookworm bookworm-updates\nComponents: non-free non-free-firmware\n"
        in added
    )
    assert "Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg" in added


def test_our_own_sources_stay_as_they_are_on_the_second_run() -> None:
    lines = "deb http://deb.example/debian bookworm main\n# deb http://deb.example/debian bookworm non-free\n"
    first = apt_sources.archive(facts(items={SOURCES: text(lines)})).text
    assert first is not None
    assert "Components: contrib non-free non-free-firmware" in first
    assert apt_sources.archive(facts(items={SOURCES: text(lines), OURS: text(first)})).text == first


@pytest.mark.parametrize("offers", [policy("http://deb.example/debian"), MISSING])
def test_a_source_of_somebody_else_is_none_of_debians(offers: dict[str, Any]) -> None:
    lines = (
        "deb http://deb.example/debian bookworm main contrib non-free non-free-firmware\n"
        "deb [signed-by=/usr/share/keyrings/x.gpg] https://apt.example/x/debian bookworm main\n"
    )
    assert apt_sources.archive(facts(items={SOURCES: text(lines), "apt.policy": offers})).text is None


def test_the_security_suite_of_the_same_mirror_is_debians() -> None:
    lines = "deb http://deb.example/debian bookworm main\ndeb http://deb.example/debian-security bookworm-security main\n"
    added = apt_sources.archive(facts(items={SOURCES: text(lines)})).text
    assert added is not None
    assert "Suites: bookworm-security" in added


def test_a_key_that_stands_in_the_entry_is_not_copied() -> None:
    entry = (
        "Types: deb\nURIs: http://deb.example/debian\nSuites: bookworm\nComponents: main\nSigned-By:\n"
        " -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n mQ\n -----END PGP PUBLIC KEY BLOCK-----\n"
    )
    host = facts(items={SOURCES: MISSING, "file:/etc/apt/sources.list.d/debian.sources": text(entry)})
    assert "add `contrib non-free non-free-firmware` to /etc/apt/sources.list.d/debian.sources" in str(
        apt_sources.archive(host).refused
    )


FALLEN = said(
    "[    0.000000] Linux version 6.1.0\n"
    "[ 9123.400000] NVRM: Xid (PCI:0000:07:00): 79, pid='<unknown>', GPU has fallen off the bus.\n"
)


@pytest.mark.parametrize(
    "sign",
    [
        {"dmesg": FALLEN},
        {
            "nvidia-smi.query": said(
                "Unable to determine the device handle for GPU0000:07:00.0: Unknown Error\n", 255
            )
        },
    ],
)
def test_no_driver_is_changed_while_a_card_is_off_the_bus(sign: dict[str, Any]) -> None:
    assert "0000:07:00.0" in (
        plan(stack(version="535.309.01", pin=("nvidia-smi=535.309.01-1",)), items=sign).refused or ""
    )
    assert "off the bus" in (plan(items=bare(**sign)).refused or "")
    # What only surrounds the driver may still be mended: another fault has to stop nothing there.
    assert plan(items=sign).refused is None
    assert plan(items={**sign, "apt.holds": said("")}).refused is None
