from __future__ import annotations

import ipaddress
import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from provision.errors import Failure, Usage
from provision.lab import keys, needs, network, packages, settings
from provision.lab.host import LabHost, all_hosts, load
from provision.lab.life import NAME
from provision.lab.place import Place, place
from provision.lab.shell import lock, run

if TYPE_CHECKING:
    from collections.abc import Sequence


@pytest.fixture
def lab(tmp_path: Path) -> Place:
    return Place(tmp_path)


def host(lab: Place, name: str = "gpu01", number: int = 10) -> LabHost:
    return LabHost(lab, name, "bookworm", "A100-SXM4-80GB:2", number, f"10.201.77.{number}", "bookworm-abc")


def test_two_labs_share_no_name() -> None:
    one, two = Place(Path("/var/lib/a")), Place(Path("/var/lib/b"))
    assert one.bridge != two.bridge
    assert host(one).link != host(two).link
    assert one.run != two.run


def test_names_on_the_machine_fit_the_kernel() -> None:
    assert len(host(Place(Path("/var/lib/a")), "n" * 32, 250).link) <= 15


def test_the_environment_names_another_lab(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GPU_PROVISION_LAB", str(tmp_path))
    assert place() == Place(tmp_path.resolve())


@pytest.mark.parametrize("name", ["gpu01", "a", "molecule-nccl", "n" * 32])
def test_good_names(name: str) -> None:
    assert NAME.fullmatch(name)


@pytest.mark.parametrize(
    "name", ["", "1a", "Gpu", "a_b", "a.b", "-a", "a-", "../x", "a b", "n" * 33, "gpu01\n"]
)
def test_bad_names(name: str) -> None:
    assert not NAME.fullmatch(name)


def test_a_host_is_kept_and_found(lab: Place) -> None:
    host(lab).folder.mkdir(parents=True)
    host(lab).save()
    assert load(lab, "gpu01") == host(lab)
    assert load(lab, "gpu02") is None
    assert [found.state for found in all_hosts(lab)] == ["half-made"]


def test_strict_checking_by_the_labs_own_known_hosts(lab: Place) -> None:
    target = host(lab).target()
    assert "StrictHostKeyChecking=yes" in target.options
    assert f"UserKnownHostsFile={lab.known_hosts}" in target.options
    assert (target.user, target.address, target.identity) == ("root", "10.201.77.10", str(lab.key))


def test_known_hosts_has_each_host_once(lab: Place) -> None:
    for text in ("old", "new"):
        etc = lab.state / text / "etc/ssh"
        etc.mkdir(parents=True)
        (etc / "ssh_host_ed25519_key.pub").write_text(f"ssh-ed25519 {text} root@x\n")
    keys.learn(lab, "10.0.0.1", lab.state / "old")
    keys.learn(lab, "10.0.0.11", lab.state / "old")
    keys.learn(lab, "10.0.0.1", lab.state / "new")
    assert lab.known_hosts.read_text().splitlines() == [
        "10.0.0.11 ssh-ed25519 old",
        "10.0.0.1 ssh-ed25519 new",
    ]
    keys.forget(lab, "10.0.0.1")
    assert lab.known_hosts.read_text() == "10.0.0.11 ssh-ed25519 old\n"


def test_the_labs_key_is_made_once_and_private(lab: Place) -> None:
    key = keys.lab_key(lab)
    text = key.read_text()
    assert key.stat().st_mode & 0o077 == 0
    assert keys.lab_key(lab).read_text() == text
    assert key.with_suffix(".pub").read_text().startswith("ssh-ed25519 ")


class FakeTools:
    """Stands for the machine's tools: keeps what was called, answers `ip route` with the given routes."""

    def __init__(self, routes: Sequence[str]) -> None:
        self.routes, self.calls = routes, []  # type: ignore[var-annotated]

    def __call__(self, argv: Sequence[str | Path], **_: object) -> subprocess.CompletedProcess[str]:
        self.calls.append([str(word) for word in argv])
        routes = json.dumps([{"dst": route} for route in self.routes])
        return subprocess.CompletedProcess([], 0, routes if "route" in self.calls[-1] else "", "")


def test_the_subnet_keeps_clear_of_the_machines_routes(lab: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    first = network.SUBNETS[int(lab.bridge[3:], 16) % len(network.SUBNETS)]
    taken = ["default", f"{first[200]}", "192.0.2.0/24"]
    monkeypatch.setattr(network, "run", FakeTools(taken))
    chosen = network.subnet(lab)
    assert chosen != first
    assert not chosen.overlaps(first)
    monkeypatch.setattr(network, "run", FakeTools([str(chosen)]))
    assert network.subnet(lab) == chosen  # kept, though the lab's own route is there now


def test_no_subnet_is_left(lab: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "run", FakeTools(["10.0.0.0/8"]))
    with pytest.raises(Failure, match="no private subnet"):
        network.subnet(lab)


def test_subnets_are_private() -> None:
    assert all(net.subnet_of(ipaddress.IPv4Network("10.0.0.0/8")) for net in network.SUBNETS)
    assert len(set(network.SUBNETS)) == len(network.SUBNETS)


def test_package_files_are_lent_and_taken_over_by_link(lab: Place, tmp_path: Path) -> None:
    pool, one, two = lab.packages("bookworm"), tmp_path / "one", tmp_path / "two"
    packages.lend(pool, one)
    archives = one / packages.ARCHIVES
    (archives / "partial").mkdir()
    (archives / "partial/half_1_all.deb").write_text("ha")
    (archives / "tree_1_all.deb").write_text("tree")
    (archives / "link_1_all.deb").symlink_to("/etc/passwd")
    packages.harvest(pool, one)
    packages.harvest(pool, one)
    packages.lend(pool, two)
    assert sorted(path.name for path in pool.iterdir()) == ["tree_1_all.deb"]
    assert (two / packages.ARCHIVES / "tree_1_all.deb").stat().st_ino == (
        archives / "tree_1_all.deb"
    ).stat().st_ino


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    files = {name: tmp_path / name for name in settings.WANTED}
    for path, found in zip(files.values(), (128, 1000000, 0), strict=True):
        path.write_text(f"{found}\n")
    monkeypatch.setattr(settings, "_file", files.__getitem__)
    monkeypatch.setattr(settings, "RUN", tmp_path)
    return files


def values(kernel: dict[str, Path]) -> list[int]:
    return [int(path.read_text()) for path in kernel.values()]


def test_settings_are_raised_never_lowered_and_put_back(kernel: dict[str, Path]) -> None:
    lab = Place(Path("/var/lib/a"))
    settings.raise_(lab)
    settings.raise_(lab)
    assert values(kernel) == [8192, 1000000, 1]
    settings.put_back(lab)
    settings.put_back(lab)
    assert values(kernel) == [128, 1000000, 0]


def test_settings_stay_until_the_last_lab_is_gone(kernel: dict[str, Path]) -> None:
    one, two = Place(Path("/var/lib/a")), Place(Path("/var/lib/b"))
    settings.raise_(one)
    settings.raise_(two)
    settings.put_back(one)
    assert values(kernel) == [8192, 1000000, 1]
    settings.put_back(two)
    assert values(kernel) == [128, 1000000, 0]


def test_a_setting_that_somebody_else_made_stays(kernel: dict[str, Path]) -> None:
    lab = Place(Path("/var/lib/a"))
    settings.raise_(lab)
    kernel["fs.inotify.max_user_instances"].write_text("16384")
    settings.put_back(lab)
    assert values(kernel)[0] == 16384


def test_without_root_one_message_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(needs.os, "geteuid", lambda: 1000)
    with pytest.raises(Usage, match=r"needs root(.|\n)*sudo") as caught:
        needs.require()
    assert caught.value.exit_code == 2


def test_without_tools_one_message_has_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(needs.os, "geteuid", lambda: 0)
    monkeypatch.setattr(
        needs, "TOOLS", {"ls": "coreutils", "no-such-tool": "a-package", "nor-this": "another"}
    )
    monkeypatch.setattr(needs, "KEYRING", Path("/no/such/keyring"))
    with pytest.raises(Usage) as caught:
        needs.require()
    assert caught.value.do == "apt-get install a-package another debian-archive-keyring"
    assert caught.value.exit_code == 2


def test_a_kind_of_host_has_needs_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(needs, "TOOLS", {"ls": "coreutils"})
    monkeypatch.setattr(needs, "KEYRING", Path("/"))
    monkeypatch.setattr(needs, "KIND_TOOLS", {"vm": {"no-such-tool": "a-package"}})
    assert needs.missing_packages() == needs.missing_packages("container") == []
    assert needs.missing_packages("vm") == ["a-package"]


def test_a_kernel_without_tap_links_has_no_virtual_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(needs.os, "geteuid", lambda: 0)
    monkeypatch.setattr(needs, "missing_packages", lambda _: [])
    monkeypatch.setattr(needs, "run", lambda *_, **__: subprocess.CompletedProcess([], 0, "", ""))
    monkeypatch.setattr(needs, "PROBE", Path("/tmp"))
    monkeypatch.setattr(needs, "KIND_NODES", {"vm": {"/no/such/node": "tap links"}})
    assert needs.can_run() is None
    assert needs.could_run("vm") is False
    with pytest.raises(Usage, match="kind vm need tap links"):
        needs.require("vm")


def test_a_failing_tool_is_quoted() -> None:
    with pytest.raises(Failure, match="code 3: so it is"):
        run(["sh", "-c", "echo so it is >&2; exit 3"])


def test_a_lock_is_held_by_one(tmp_path: Path) -> None:
    with lock(tmp_path / "run/lock") as mine:
        assert mine
        with lock(tmp_path / "run/lock", wait=False) as also_mine:
            assert not also_mine
    with lock(tmp_path / "run/lock", wait=False) as mine_again:
        assert mine_again
