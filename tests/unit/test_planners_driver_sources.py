"""The driver from each source: what moves, what is in the way, whose modules they are, what has to go in first."""

# ruff: noqa: E501

from __future__ import annotations

from typing import Any

import pytest
from planner_host import (
    CONVERGED,
    KERNEL,
    MISSING,
    PLAIN,
    RELEASE,
    dpkg,
    facts,
    kernel,
    policy,
    profile,
    said,
    stack,
    text,
)

from provision.catalog.stack import Driver, Part
from provision.planners import driver_rpm, nvidia_driver
from provision.planners.driver_origin import origin
from provision.recording.model import Recording

NVIDIA = "https://developer.download.nvidia.com/compute/cuda/repos/debian12/x86_64"
SET = ("nvidia-driver-cuda", "nvidia-kernel-open-dkms", "nvidia-kernel-support", "libcuda1", "libnvidia-ml1")
OLD, NEW = "570.211.01-1", "580.95.05-1"
GRUB = "http://archive.example/ubuntu"


def offered(names: dict[str, tuple[str, ...]], uri: str = NVIDIA, suite: str = "") -> str:
    """`apt-cache policy` of some packages that one archive has, newest version first."""
    lines = []
    for name, versions in names.items():
        lines += [f"{name}:", "  Installed: (none)", f"  Candidate: {versions[0]}", "  Version table:"]
        for version in versions:
            lines += [f"     {version} 600", f"        600 {uri} {suite} Packages"]
    return "\n".join(lines) + "\n"


def nvidias(*extra: str) -> dict[str, Any]:
    names = dict.fromkeys((*SET, *extra), (NEW, OLD)) | {"nvidia-driver-pinning-580": ("580-5",)}
    return said(policy("http://deb.example/debian")["stdout"] + offered(names))


def chosen(
    version: str = "580.95.05", modules: str = "open", packages: tuple[str, ...] = SET, **more: Any
) -> Any:
    return stack(
        source="nvidia", branch=int(version.partition(".")[0]), version=version, modules=modules, packages=packages,
        pin=tuple(f"{name}={version}-1" for name in packages), pin_by="pinning-package", main="nvidia-driver-cuda", **more,
    )  # fmt: skip


def plan(items: dict[str, Any], of: Any = None, **variables: Any) -> nvidia_driver.DriverWanted:
    variables = {"nvidia_driver_source": "nvidia", **variables}
    return nvidia_driver.wanted(
        facts(items={"apt.policy": nvidias(), **items}), profile(**variables), of or chosen()
    )


def there(version: str, *extra: str, **more: str) -> dict[str, Any]:
    return dpkg({**PLAIN, "dkms": "3.0.10-8", **dict.fromkeys((*SET, *extra), version), **more})


def test_the_pinning_package_goes_in_first_and_those_of_other_branches_go() -> None:
    planned = plan(
        {"dpkg.list": there(OLD, **{"nvidia-driver-pinning-570": "570-5"})}, nvidia_driver_branch=580
    )
    assert planned.first == ("nvidia-driver-pinning-580", "nvidia-driver-pinning-570-")
    assert planned.absent == ("nvidia-driver-pinning-570",)
    assert {f"{name}={NEW}" for name in SET} <= set(planned.packages)
    assert set(planned.holds) == {*SET, "nvidia-driver-pinning-580"}
    assert planned.exact


def test_a_repository_without_the_pinning_package_is_pinned_by_our_file_alone() -> None:
    planned = plan({"dpkg.list": there(NEW), "apt.policy": said(offered(dict.fromkeys(SET, (NEW,))))})
    assert planned.first == ()
    assert any(file.path.startswith("/etc/apt/preferences.d/") for file in planned.files)


def test_what_else_of_the_driver_is_installed_moves_with_it_and_is_held() -> None:
    items = {
        "dpkg.list": there(OLD, "nvidia-open", "libnvidia-encode1"),
        "apt.policy": nvidias("nvidia-open", "libnvidia-encode1"),
    }
    planned = plan(items, nvidia_driver_branch=580)
    assert {f"nvidia-open={NEW}", f"libnvidia-encode1={NEW}"} <= set(planned.packages)
    assert not planned.absent


def test_what_the_new_release_has_not_any_more_goes() -> None:
    planned = plan({"dpkg.list": there(OLD, "nvidia-open-570")}, nvidia_driver_branch=580)
    assert planned.absent == ("nvidia-open-570",)
    assert "nvidia-open-570" not in planned.holds


def test_an_adopted_set_is_held_with_its_meta_package() -> None:
    planned = plan({"dpkg.list": there(NEW, "nvidia-open")})
    assert "nvidia-open" in planned.holds
    assert not planned.absent


def test_a_change_of_flavour_names_the_other_one_and_its_meta_package() -> None:
    packages = tuple(name.replace("-open-dkms", "-dkms") for name in SET)
    items = {
        "dpkg.list": there(NEW, "nvidia-open"),
        "apt.policy": nvidias("nvidia-open", "nvidia-kernel-dkms"),
    }
    planned = plan(
        items, chosen(modules="proprietary", packages=packages), nvidia_driver_modules="proprietary"
    )
    assert planned.absent == ("nvidia-kernel-open-dkms", "nvidia-open")


def test_debians_driver_becomes_nvidias_in_one_transaction_when_named() -> None:
    debians = {**CONVERGED, "nvidia-legacy-check": f"{RELEASE}-1"}
    debian_policy = offered(
        dict.fromkeys(debians, (f"{RELEASE}-1",)), "http://deb.example/debian", "bookworm/non-free"
    )
    items = {"dpkg.list": dpkg(debians), "apt.policy": said(debian_policy + nvidias()["stdout"])}
    planned = plan(items, nvidia_driver_branch=580)
    assert planned.refused is None
    assert {
        "nvidia-kernel-dkms",
        "nvidia-smi",
        "nvidia-alternative",
        "nvidia-legacy-check",
        "firmware-nvidia-gsp",
    } <= set(planned.absent)
    assert not set(planned.absent) & set(SET)


def test_the_fabric_manager_goes_in_with_the_driver() -> None:
    part = Part("580.95.05", ("nvidia-fabricmanager", "nvlsm"), (f"nvidia-fabricmanager={NEW}",), "nvidia")
    base = chosen()
    with_fabric = type(base)(satisfiable=True, driver=base.driver, fabric_manager=part)
    planned = plan({"dpkg.list": there(NEW)}, with_fabric)
    assert {f"nvidia-fabricmanager={NEW}", "nvlsm"} <= set(planned.packages)
    assert {"nvidia-fabricmanager", "nvlsm"} <= set(planned.holds)


@pytest.mark.parametrize(
    ("name", "version", "whose"),
    [
        ("libcuda1", NEW, "nvidia"), ("nvidia-utils-580-server", "580.95.05-0ubuntu0.24.04.2", "ubuntu"),
        ("libnvidia-compute-580", "580.95.05-0ubuntu0.24.04.2", "ubuntu"), ("libnvidia-compute-580", "580.95.05-0ubuntu1", "nvidia"),
        ("nvidia-open-kernel-dkms", "535.261.03-1~deb12u1", "debian"), ("libnvidia-glcore", "535.261.03-1~deb12u1", "debian"),
        ("libnvidia-glcore", "535.1.1-1", None),
    ],
)  # fmt: skip
def test_whose_a_package_is(name: str, version: str, whose: str | None) -> None:
    host = facts(items={"apt.policy": nvidias(), "dpkg.list": dpkg({name: version, "bash": "5"})})
    packages = host.packages
    assert hasattr(packages, "installed")
    assert origin(packages.installed[name], host, "debian") == whose


UBUNTU: dict[str, Any] = {
    "os-release": text('ID=ubuntu\nVERSION_ID="24.04"\nVERSION_CODENAME=noble\nPRETTY_NAME="Ubuntu 24.04"\n'),
    "file:/etc/apt/sources.list": text(f"deb {GRUB} noble main restricted universe multiverse\n"),
    "kernels": said([kernel("6.8.0-60-generic", None)]),
    "dpkg.list": dpkg({"linux-image-generic": "6.8.0-60.63", "linux-image-6.8.0-60-generic": "6.8.0-60.63", "bash": "5.2"}),
}  # fmt: skip
SERVER = (
    "nvidia-headless-580-server-open",
    "nvidia-dkms-580-server-open",
    "nvidia-kernel-source-580-server-open",
    "nvidia-utils-580-server",
)


def on_ubuntu(names: dict[str, tuple[str, ...]], **items: Any) -> nvidia_driver.DriverWanted:
    version = "580.95.05-0ubuntu0.24.04.2"
    names = {"linux-image-generic": ("6.8.0-60.63",), **dict.fromkeys(SERVER, (version,)), **names}
    offers = said(offered(names, GRUB, "noble/restricted"))
    server = stack(source="ubuntu", branch=580, version="580.95.05", modules="open", packages=SERVER,
                   pin=tuple(f"{name}={version}" for name in SERVER), main="nvidia-utils-580-server")  # fmt: skip
    host = facts(items={**UBUNTU, "apt.policy": offers, "lsmod": said("Module Size Used by\n"), **items})
    return nvidia_driver.wanted(host, profile(nvidia_driver_source="ubuntu"), server)


PREBUILT = {"linux-modules-nvidia-580-server-open-6.8.0-60-generic": ("6.8.0-60.63+1",),
            "linux-modules-nvidia-580-server-open-generic": ("6.8.0-60.63+1",)}  # fmt: skip


def test_ubuntus_prebuilt_modules_are_taken_where_each_kernel_has_one() -> None:
    planned = on_ubuntu(PREBUILT)
    assert planned.refused is None
    names = {package.partition("=")[0] for package in planned.packages}
    assert {"nvidia-headless-no-dkms-580-server-open", *PREBUILT} <= names
    assert not names & {"nvidia-dkms-580-server-open", "nvidia-headless-580-server-open"}
    assert "linux-headers-generic" in names


def test_the_kernels_to_come_are_those_that_the_host_follows() -> None:
    stem = "linux-modules-nvidia-580-server-open"
    offers = {**PREBUILT, f"{stem}-aws": ("6.8.0-1024.26",), f"{stem}-azure": ("6.8.0-1024.26",)}
    rows = str(UBUNTU["dpkg.list"]["stdout"]) + "ii \tlinux-image-aws\t6.8.0-1024.26\tamd64\n"
    names = {p.partition("=")[0] for p in on_ubuntu(offers, **{"dpkg.list": said(rows)}).packages}
    assert {*PREBUILT, f"{stem}-aws"} <= names
    assert f"{stem}-azure" not in names


def test_a_kernel_without_one_has_dkms_build_all() -> None:
    two = said([kernel("6.8.0-60-generic", None), kernel("6.12.1-own", None)])
    names = {package.partition("=")[0] for package in on_ubuntu(PREBUILT, kernels=two).packages}
    assert "nvidia-dkms-580-server-open" in names
    assert not names & set(PREBUILT)


@pytest.mark.parametrize(("names", "refused"), [(PREBUILT, False), ({}, True)])
def test_secure_boot_takes_ubuntus_signature(names: dict[str, tuple[str, ...]], refused: bool) -> None:
    off = {"file:/proc/driver/nvidia/version": MISSING, "file:/sys/module/nvidia/version": MISSING}
    planned = on_ubuntu(names, **{"secure-boot": said("SecureBoot enabled\n"), **off})
    assert ("mokutil --import" in str(planned.refused)) is refused


def test_ubuntu_signs_with_a_key_of_its_own() -> None:
    off = {"file:/proc/driver/nvidia/version": MISSING, "file:/sys/module/nvidia/version": MISSING}
    on = {"secure-boot": said("SecureBoot enabled\n"), **off}
    told = str(on_ubuntu({}, **on).refused)
    assert "update-secureboot-policy --new-key" in told
    assert "mokutil --import /var/lib/shim-signed/mok/MOK.der" in told
    enrolled = {"secure-boot.shim-key": said("/var/lib/shim-signed/mok/MOK.der is already enrolled\n", 1)}
    assert on_ubuntu({}, **on, **enrolled).refused is None


def rhel(pin_by: str, pin: str, items: dict[str, Any] | None = None) -> driver_rpm.Dnf:
    rows = "".join(f"ii \t{name}\t1-1\tx86_64\n" for name in ("dnf", "bash", "kernel-core"))
    base = {
        "os-release": text('ID="rhel"\nVERSION_ID="9.6"\nPRETTY_NAME="RHEL 9.6"\n'), "dpkg.list": MISSING, "rpm.list": said(rows),
        "glob:/etc/yum.repos.d/*.repo": {"paths": ["/etc/yum.repos.d/epel.repo"]}, "file:/etc/yum.repos.d/epel.repo": text("[epel]\n"),
        "glob:/etc/dnf/modules.d/*.module": {"paths": []}, "kernels": said([kernel("5.14.0-1.el9.x86_64", None, headers=False)]),
    }  # fmt: skip
    host = facts(items={**base, **(items or {})})
    driver: Driver = stack(
        source="nvidia", branch=580, packages=("nvidia-open",), pin=(pin,), pin_by=pin_by
    ).driver  # type: ignore[assignment]
    packages = host.packages
    assert hasattr(packages, "manager")
    return driver_rpm.dnf(host, profile(), driver, packages, ("5.14.0-1.el9.x86_64",))


def test_rhel_enables_the_stream_and_brings_the_kernels_devel() -> None:
    found = rhel("dnf-module", "nvidia-driver:580-open")
    assert (found.refused, found.stream, found.enable) == (None, "nvidia-driver:580-open", True)
    assert found.devel == ("kernel-devel-5.14.0-1.el9.x86_64",)
    assert "baseurl=https://developer.download.nvidia.com/compute/cuda/repos/rhel9/x86_64/\n" in str(
        found.files[0].text
    )


def test_a_host_without_dnf_or_epel_is_refused() -> None:
    assert "has no dnf" in str(
        rhel("dnf-module", "x:y", {"rpm.list": said("ii \tbash\t1-1\tx86_64\n")}).refused
    )
    assert "add epel-release" in str(
        rhel(
            "dnf-module",
            "x:y",
            {"glob:/etc/yum.repos.d/*.repo": {"paths": []}, "file:/etc/yum.repos.d/epel.repo": MISSING},
        ).refused
    )


def test_recordings_are_what_facts_read() -> None:
    assert isinstance(facts().recording, Recording)
    assert KERNEL in str(facts().kernels)
