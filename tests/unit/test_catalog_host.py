"""The set of a real host: from a recording and a profile's variables."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml

from provision.catalog import Stack
from provision.catalog.host import demands_of, stack_for
from provision.errors import Usage
from provision.facts import Facts
from provision.facts.known import Unknown
from provision.profile.model import Profile
from provision.recording.model import Recording

ARCHIVES = yaml.safe_load(
    Path(__file__).with_name("catalog").joinpath("archives.yml").read_text(encoding="utf-8")
)
TODAY = date(2026, 11, 30)
MIRROR = "http://mirror.example/debian"
NVIDIA = "https://developer.download.nvidia.com/compute/cuda/repos/debian13/x86_64"
SYSTEMS = {
    "bookworm": 'ID=debian\nVERSION_ID="12"\nVERSION_CODENAME=bookworm\nPRETTY_NAME="Debian GNU/Linux 12"\n',
    "trixie": 'ID=debian\nVERSION_ID="13"\nVERSION_CODENAME=trixie\nPRETTY_NAME="Debian GNU/Linux 13"\n',
    "rhel": 'ID=rhel\nVERSION_ID="9.6"\nPRETTY_NAME="Red Hat Enterprise Linux 9.6"\n',
    "other": 'ID=slackware\nVERSION_ID="15.0"\nPRETTY_NAME="Slackware 15.0"\n',
}


def policy(archive: str, installed: dict[str, str] | None = None, uri: str = MIRROR) -> str:
    """`apt-cache policy` of an archive; `installed` has versions by name."""
    blocks = []
    for name, versions in ARCHIVES[archive].items():
        if not versions:
            continue
        own = (installed or {}).get(name)
        lines = [
            f"{name}:",
            f"  Installed: {own or '(none)'}",
            f"  Candidate: {versions[0]}",
            "  Version table:",
        ]
        for version in versions:
            priority = 100 if "~bpo" in version else 500
            lines += [
                f" {'***' if version == own else '   '} {version} {priority}",
                f"        {priority} {uri} x/y amd64 Packages",
            ]
        blocks.append("\n".join(lines))
    return "\n".join(blocks) + "\n"


def answer(text: str) -> dict[str, Any]:
    return {"rc": 0, "stdout": text, "stderr": ""}


def facts(
    system: str, devices: list[str], *, policy_text: str | None = None, dpkg: str = "", switches: int = 0
) -> Facts:
    pci = [
        {
            "address": f"0000:{i:02x}:00.0",
            "vendor": "0x10de",
            "device": f"0x{device}",
            "class": "0x030200",
            "driver": None,
            "numa_node": 0,
        }
        for i, device in enumerate(devices, 1)
    ]
    pci += [
        {
            "address": f"0000:f{i}:00.0",
            "vendor": "0x10de",
            "device": "0x22a3",
            "class": "0x068000",
            "driver": None,
            "numa_node": 0,
        }
        for i in range(switches)
    ]
    pci.append(
        {
            "address": "0000:00:00.0",
            "vendor": "0x8086",
            "device": "0x0001",
            "class": "0x060000",
            "driver": None,
            "numa_node": 0,
        }
    )
    items: dict[str, Any] = {
        "os-release": {"text": SYSTEMS[system]},
        "uname": answer("Linux gpu01 6.1.0-18-amd64 #1 SMP x86_64 GNU/Linux\n"),
        "pci": answer(json.dumps(pci)),
        "dpkg.list": answer(dpkg or "ii \tbash\t5.2-1\tamd64\n"),
    }
    if policy_text is not None:
        items["apt.policy"] = answer(policy_text)
    return Facts(Recording("gpu01", "2026-11-30T12:00:00Z", True, 0.1, items))


def choose(host: Facts, **variables: Any) -> Stack:
    stack = stack_for(host, Profile("test", variables), TODAY)
    assert isinstance(stack, Stack)
    return stack


def test_a_lab_host_gets_what_its_archive_holds() -> None:
    stack = choose(facts("trixie", ["20b2"] * 8, policy_text=policy("trixie")), nvidia_driver_source="debian")
    assert stack.driver is not None
    assert (stack.driver.version, stack.driver.modules) == ("550.163.01", "proprietary")
    assert "nvidia-kernel-dkms=550.163.01-2" in stack.driver.pin
    assert "nvidia-modprobe=570.133.07-1" in stack.driver.pin
    assert {p.partition("=")[0] for p in stack.driver.pin} == set(stack.driver.packages)


def test_modules_that_do_not_compile_for_the_archives_kernels_are_taken_only_if_asked_for() -> None:
    host = facts("trixie", ["20b2"], policy_text=policy("trixie"))
    by_itself = choose(host, nvidia_driver_source="debian")
    assert by_itself.driver is not None
    assert by_itself.driver.modules == "proprietary"
    assert any("pci_resize_resource" in r.says for r in by_itself.reasons if r.about == "driver.modules")
    asked = choose(host, nvidia_driver_source="debian", nvidia_driver_modules="open")
    assert asked.driver is not None
    assert asked.driver.modules == "open"
    assert [w.kind for w in asked.warnings if "pci_resize_resource" in w.says] == ["does-not-build"]


def test_a_bare_host_gets_the_branch_and_a_minimum() -> None:
    stack = choose(
        facts("trixie", ["20b2"], policy_text="bash:\n  Installed: 1\n  Candidate: 1\n  Version table:\n"),
        nvidia_driver_source="debian",
    )
    assert stack.driver is not None
    assert (stack.driver.branch, stack.driver.version, stack.driver.minimum) == (550, None, "550.54.14")
    assert stack.driver.pin == ()


def test_the_archive_need_not_have_been_asked() -> None:
    stack = choose(facts("trixie", ["20b2"]), nvidia_driver_source="debian")
    assert stack.driver is not None
    assert stack.driver.version is None


def test_security_fixes_come_before_the_flavour() -> None:
    stack = choose(facts("bookworm", ["20b2"], policy_text=policy("bookworm")), nvidia_driver_source="debian")
    assert stack.driver is not None
    assert (stack.driver.version, stack.driver.modules) == ("535.309.01", "proprietary")


def test_auto_keeps_the_source_of_the_present_driver() -> None:
    installed = {"nvidia-smi": "550.163.01-2", "libcuda1": "550.163.01-2"}
    dpkg = "".join(f"ii \t{name}\t{version}\tamd64\n" for name, version in installed.items())
    host = facts("trixie", ["20b2"], policy_text=policy("trixie", installed), dpkg=dpkg)
    stack = choose(host)
    assert stack.driver is not None
    assert (stack.driver.source, stack.driver.branch) == ("debian", 550)
    moved = choose(host, nvidia_driver_source="nvidia")
    assert moved.driver is not None
    assert moved.driver.source == "nvidia"


def present(archive: str, version: str, **other: str) -> tuple[str, str]:
    """A host that has a whole set in some version: its `apt-cache policy` and dpkg's list."""
    names = [n for n, versions in ARCHIVES[archive].items() if version in versions and n not in other]
    installed = {**dict.fromkeys(names, version), **other}
    dpkg = "".join(f"hi \t{name}\t{installed[name]}\tamd64\n" for name in sorted(installed))
    return policy(archive, installed), dpkg


def test_a_driver_that_serves_is_not_replaced_without_being_asked() -> None:
    text, dpkg = present("bookworm", "535.261.03-1")
    host = facts("bookworm", ["20b2"], policy_text=text, dpkg=dpkg)
    stack = choose(host)
    assert stack.driver is not None
    assert (stack.driver.version, stack.driver.source) == ("535.261.03", "debian")
    assert "update-available" in {w.kind for w in stack.warnings} or stack.driver.modules == "open"
    upgraded = stack_for(host, Profile("test", {}), TODAY, keep=False)
    assert isinstance(upgraded, Stack)
    assert upgraded.driver is not None
    assert (upgraded.driver.version, upgraded.driver.modules) == ("535.309.01", "proprietary")
    asked = choose(host, nvidia_driver_version="535.309.01")
    assert asked.driver is not None
    assert asked.driver.version == "535.309.01"


def test_a_newer_release_in_the_archive_is_told() -> None:
    text, dpkg = present("bookworm", "535.261.03-1")
    dpkg = "".join(line for line in dpkg.splitlines(keepends=True) if "nvidia-open" not in line)
    stack = choose(facts("bookworm", ["20b2"], policy_text=text, dpkg=dpkg))
    assert stack.driver is not None
    assert (stack.driver.version, stack.driver.modules) == ("535.261.03", "proprietary")
    assert [w.says for w in stack.warnings if w.kind == "update-available"]


def test_half_a_set_is_no_driver_to_keep() -> None:
    text, dpkg = present("bookworm", "535.261.03-1", **{"libcuda1": "535.309.01-0+deb12u1"})
    stack = choose(facts("bookworm", ["1db5"], policy_text=text, dpkg=dpkg))
    assert stack.driver is not None
    assert stack.driver.version == "535.309.01"


def test_a_driver_that_no_longer_serves_is_replaced() -> None:
    text, dpkg = present("trixie", "550.163.01-2")
    host = facts("trixie", ["20b2", "2901"], policy_text=text, dpkg=dpkg)
    stack = choose(host, nvidia_driver_source="nvidia")
    assert stack.driver is not None
    assert (stack.driver.branch, stack.driver.source) == (620, "nvidia")


def test_the_source_is_known_when_the_archive_has_moved_on() -> None:
    dpkg = "ii \tlibcuda1\t550.144.03-1\tamd64\n"
    host = facts("trixie", ["20b2"], policy_text=policy("trixie", {"libcuda1": "550.144.03-1"}), dpkg=dpkg)
    stack = choose(host)
    assert stack.driver is not None
    assert (stack.driver.source, stack.driver.version) == ("debian", "550.163.01")


@pytest.mark.parametrize(
    ("packages", "source"),
    [
        ({"libcuda1": "580.95.05-1", "cuda-drivers": "580.95.05-1"}, "nvidia"),
        ({"libcuda1": "550.163.01-2", "nvidia-legacy-check": "550.163.01-2"}, "debian"),
        ({"cuda-drivers": "580.95.05-1"}, "nvidia"),
    ],
)
def test_the_source_is_known_without_any_archive(packages: dict[str, str], source: str) -> None:
    dpkg = "".join(f"ii \t{name}\t{version}\tamd64\n" for name, version in packages.items())
    stack = choose(facts("trixie", ["20b2"], dpkg=dpkg))
    assert stack.driver is not None
    assert stack.driver.source == source


def test_auto_without_a_driver_is_nvidia() -> None:
    stack = choose(facts("trixie", ["20b2"], policy_text=policy("trixie")))
    assert stack.driver is not None
    assert stack.driver.source == "nvidia"


def test_a_driver_of_nvidias_repository_is_told_by_its_address() -> None:
    installed = {"libcuda1": "550.163.01-2"}
    text = policy("trixie", installed, NVIDIA)
    stack = choose(facts("trixie", ["20b2"], policy_text=text, dpkg="ii \tlibcuda1\t550.163.01-2\tamd64\n"))
    assert stack.driver is not None
    assert stack.driver.source == "nvidia"


def test_conflicts_speak_of_variables() -> None:
    stack = choose(facts("trixie", ["2901"], policy_text=policy("trixie")), nvidia_driver_source="debian")
    assert not stack.satisfiable
    assert [set(c.demands) for c in stack.conflicts] == [
        {"NVIDIA B200 (10de:2901)", "nvidia_driver_source: debian"}
    ]
    stack = choose(facts("bookworm", ["1db5"]), cuda_versions=["13.0"])
    assert [set(c.demands) for c in stack.conflicts] == [
        {"Tesla V100-SXM2-32GB (10de:1db5)", "cuda_versions: 13.0"}
    ]


def test_nvswitches_call_for_the_fabric_manager() -> None:
    stack = choose(facts("rhel", ["2330"] * 8, switches=4), nvidia_driver_branch="580")
    assert stack.fabric_manager is not None
    assert stack.fabric_manager.packages == ("nvidia-fabricmanager",)
    assert choose(facts("rhel", ["2330"] * 8)).fabric_manager is None


def test_a_fabric_manager_with_releases_of_its_own_is_named_by_one_of_them() -> None:
    """2.0.0 is less than 595.71.05, which apt would take by itself from a repository that has both."""
    rows = "".join(f"     {v} 600\n        600 {NVIDIA} / Packages\n" for v in ("595.71.05-1", "2.0.0-1"))
    offers = f"nvidia-fabricmanager:\n  Installed: (none)\n  Candidate: 595.71.05-1\n  Version table:\n{rows}"
    on = facts("trixie", ["2330"] * 8, switches=4, policy_text=offers)
    stack = choose(on, nvidia_driver_source="nvidia", nvidia_driver_branch="620")
    assert stack.fabric_manager is not None
    assert stack.fabric_manager.pin == ("nvidia-fabricmanager=2.0.0-1",)


def test_rhel_is_told_by_its_major() -> None:
    stack = choose(facts("rhel", ["1eb8"]), nvidia_driver_branch=580)
    assert stack.driver is not None
    assert stack.driver.pin == ("nvidia-driver:580-open",)


@pytest.mark.parametrize(
    ("host", "says"),
    [
        (facts("trixie", ["ffff"]), "may be newer than the catalog"),
        (facts("trixie", []), "no NVIDIA GPU on the host's bus"),
        (facts("other", ["20b2"]), "no such operating system"),
        (
            Facts(Recording("gpu01", "", True, 0.0, {"os-release": {"text": SYSTEMS["trixie"]}})),
            "was not asked",
        ),
    ],
)
def test_what_cannot_be_told_is_unknown(host: Facts, says: str) -> None:
    stack = stack_for(host, Profile("test", {}), TODAY)
    assert isinstance(stack, Unknown)
    assert says in stack.reason


@pytest.mark.parametrize(
    ("variables", "says"),
    [
        ({"nvidia_driver_branch": "585"}, "nvidia_driver_branch: 585: there is no driver branch 585"),
        (
            {"nvidia_driver_version": "575.1", "nvidia_driver_branch": "580"},
            "no release of nvidia_driver_branch: 580",
        ),
        ({"cuda_versions": ["12.7"]}, "CUDA 12.7 was never released"),
        ({"nvidia_driver_source": "fedora"}, "not one of auto"),
        ({"cuda_nccl": "2.99"}, "cuda_nccl: 2.99: the catalog has no such release"),
    ],
)
def test_a_wrong_variable_is_refused(variables: dict[str, Any], says: str) -> None:
    with pytest.raises(Usage, match=says):
        stack_for(facts("trixie", ["20b2"]), Profile("test", variables), TODAY)


def test_variables_become_demands() -> None:
    demands = demands_of(
        {
            "nvidia_driver_source": "auto",
            "nvidia_driver_branch": 580,
            "nvidia_driver_version": "",
            "nvidia_driver_modules": "open",
            "cuda_versions": ["13.0", "12.8"],
            "cuda_cudnn": 9,
            "cuda_nccl": "2.28",
            "container_toolkit_version": None,
        }
    )
    assert (demands.driver, demands.cuda, demands.cudnn, demands.nccl) == (
        "580",
        ("13.0", "12.8"),
        "9",
        "2.28",
    )
    assert (demands.source, demands.modules, demands.container_toolkit) == ("auto", "open", None)
    assert demands_of({}).cuda is None
    assert demands_of({"cuda_versions": []}).cuda is None


def test_the_document_comes_back_whole() -> None:
    for devices, variables in (
        (["20b2"], {"cuda_versions": ["13.0", "12.8"]}),
        (["1db5"], {"cuda_versions": ["13.0"]}),
    ):
        stack = choose(facts("rhel", devices, switches=2), **variables)
        assert Stack.from_dict(json.loads(json.dumps(stack.as_dict()))) == stack
