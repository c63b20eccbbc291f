"""What the collector answers itself, on trees and texts of a test's own."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from typing import Any

import pytest

from provision.recording.collect import (
    accounts,
    firewall,
    kernels,
    network,
    nvidia,
    packages,
    people,
    sshd,
    sshd_cases,
    storage,
    system,
    unit_files,
    units,
)

ED25519 = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIExample"
PEOPLE = [
    ("root", "x", 0, 0, "/root", "/bin/bash"),
    ("daemon", "x", 1, 1, "/usr/sbin", "/usr/sbin/nologin"),
    ("alice", "x", 1000, 1000, "/home/alice", "/bin/bash"),
]


def listed(answer: dict[str, Any]) -> Any:
    assert answer["rc"] == 0
    return json.loads(answer["stdout"])


# ------------------------------------------------------------------------------------------ sshd


def test_included_files_come_in_the_order_in_which_sshd_reads_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sshd, "sshd_arguments", list)
    drops = tmp_path / "d"
    drops.mkdir()
    for name in ("50-cloud-init.conf", "00-first.conf", "ignored.txt"):
        (drops / name).write_text(f"# {name}\n")
    (tmp_path / "late").write_text(f"Include {drops}/00*.conf\n")
    main = tmp_path / "sshd_config"
    main.write_text(f'Include {drops}/*.conf\nPort 22\n  include "{tmp_path}/late" {tmp_path}/none # no\n')
    files = sshd.sshd_files(str(main))["files"]
    assert [Path(entry["path"]).name for entry in files] == [
        "sshd_config", "00-first.conf", "50-cloud-init.conf", "late", "00-first.conf",
    ]  # fmt: skip
    assert files[1]["text"] == "# 00-first.conf\n"
    assert sshd.sshd_files(str(tmp_path / "absent"))["missing"]


def test_a_file_that_includes_itself_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sshd, "sshd_arguments", list)
    main = tmp_path / "sshd_config"
    main.write_text(f"Include {main}\n")
    assert 1 < len(sshd.sshd_files(str(main))["files"]) < 30


@pytest.fixture
def asking(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sshd_cases, "operator_address", lambda: "203.0.113.5")
    monkeypatch.setattr(sshd_cases, "operator_name", lambda: "alice")
    monkeypatch.setattr(people, "passwd", lambda: PEOPLE)


def cases(text: str) -> list[dict[str, str]]:
    return sshd_cases.sshd_cases([{"path": "/etc/ssh/sshd_config", "text": text}])


@pytest.mark.usefixtures("asking")
def test_without_match_blocks_users_and_addresses_that_matter_are_asked() -> None:
    found = cases("PasswordAuthentication no\n")
    pairs = {(case["user"], case["addr"]) for case in found}
    assert {("root", "203.0.113.5"), ("alice", "203.0.113.5"), ("root", "127.0.0.1")} <= pairs
    users = {user for user, _ in pairs}
    assert "daemon" not in users
    stranger = users - {"root", "alice"}
    assert len(stranger) == 1
    assert {addr for user, addr in pairs if user in stranger} >= {"203.0.113.5", "127.0.0.1", "198.51.100.77"}
    assert len(found) < 15


@pytest.mark.usefixtures("asking")
@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("Match Address 10.0.0.0/8", {"addr": "10.0.0.1"}),
        ("match address 10.0.0.0/8,192.168.7.9", {"addr": "192.168.7.9"}),
        ("Match Address 2001:db8:9::/48", {"addr": "2001:db8:9::1"}),
        ("Match Address 172.16.*", {"addr": "172.16.1.1"}),
        ("Match User deploy", {"user": "deploy"}),
        ("Match user=deploy,other", {"user": "other"}),
        ('Match User "deploy" Address 10.0.0.0/8', {"user": "deploy", "addr": "10.0.0.1"}),
        ("Match Host *.example.com", {"host": "1.example.com"}),
        ("Match LocalPort 2222", {"lport": "2222"}),
        ("Match LocalAddress 10.9.8.7", {"laddr": "10.9.8.7"}),
    ],
)
def test_each_match_block_gets_a_question_that_it_covers(line: str, wanted: dict[str, str]) -> None:
    found = cases(f"PasswordAuthentication no\n{line}\n    PasswordAuthentication yes\n")
    assert any(wanted.items() <= case.items() for case in found)


@pytest.mark.usefixtures("asking")
def test_many_match_blocks_stay_within_bounds() -> None:
    text = "".join(f"Match User u{n} Address 10.{n}.0.0/16\n  X11Forwarding no\n" for n in range(200))
    assert len(cases(text)) <= 120


# ------------------------------------------------------------------------------------------ accounts


def test_keys_are_counted_as_sshd_reads_them(tmp_path: Path) -> None:
    file = tmp_path / "authorized_keys"
    file.write_text(
        f"# comment\n\n{ED25519} me@laptop\n{ED25519}\n"
        f'command="echo \\"no\\";sleep 1",no-pty {ED25519} cloud\n'
        f'from="10.0.0.0/8,!10.1.1.1" {ED25519}\n'
        f"cert-authority {ED25519} ca\n"
        "sk-ssh-ed25519@openssh.com AAAA token\n"
        "ssh-ed25519\nnot a key at all\n"
    )
    found = accounts._keys(str(file))
    assert (found.total, found.forced, found.authorities) == (5, 1, 1)
    assert len(found.plain) == 3, "without options"
    assert len(found.bound) == 2
    assert found.plain[0].startswith("SHA256:")
    assert found.plain[0] == found.bound[0], "the same key"


@pytest.mark.parametrize(
    ("field", "state"),
    [
        ("$6$x$y", {"password": "set"}),
        ("!", {"password": "locked", "locked_by": "!"}),
        ("!$6$x$y", {"password": "locked", "locked_by": "!"}),
        ("*", {"password": "locked", "locked_by": "*"}),
        ("", {"password": "none"}),
    ],
)
def test_passwords_are_told_apart_as_passwd_does(field: str, state: dict[str, str]) -> None:
    assert accounts._password(["u", field, "19000", "0", "99999", "7", "", ""]) == state


def test_an_account_may_be_expired_or_want_a_new_password() -> None:
    assert accounts._password(["u", "$y$x", "0", "0", "99999", "7", "", "1"]) == {
        "password": "set",
        "expired": True,
        "must_change_password": True,
    }


SUDO = "Matching Defaults entries for u on h:\n    env_reset\n\nUser u may run the following commands on h:\n"


@pytest.mark.parametrize(
    ("rules", "level"),
    [
        ("    (ALL : ALL) ALL\n", "passwd"),
        ("    (ALL) NOPASSWD: ALL\n", "nopasswd"),
        ("    (root) NOPASSWD: ALL\n", "nopasswd"),
        ("    (ALL : ALL) ALL\n    (ALL) NOPASSWD: ALL\n", "nopasswd"),
        ("    (ALL) NOPASSWD: ALL\n    (ALL) PASSWD: ALL\n", "passwd"),
        ("    (root) NOPASSWD: /usr/bin/apt-get, /usr/bin/dpkg\n", "none"),
        ("    (postgres) NOPASSWD: ALL\n", "none"),
        ("    (ALL) NOPASSWD: SETENV: ALL\n", "nopasswd"),
    ],
)
def test_sudo_rights_are_those_to_become_root_for_anything(
    monkeypatch: pytest.MonkeyPatch, rules: str, level: str
) -> None:
    monkeypatch.setattr(accounts.os, "geteuid", lambda: 0)
    monkeypatch.setattr(accounts, "ask", lambda *_: {"rc": 0, "stdout": SUDO + rules, "stderr": ""})
    assert accounts._sudo("u")["sudo"] == level


def test_sudo_rights_that_could_not_be_read_are_not_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accounts.os, "geteuid", lambda: 0)
    monkeypatch.setattr(accounts, "ask", lambda *_: {"rc": None, "timed_out": True})
    assert accounts._sudo("u") == {"sudo": None}
    monkeypatch.setattr(accounts.os, "geteuid", lambda: 1000)
    monkeypatch.setattr(accounts, "operator_name", lambda: "me")
    assert accounts._sudo("u") == {"sudo": None}


def test_loose_modes_of_key_files_are_named(tmp_path: Path) -> None:
    home = tmp_path / "home"
    keys = home / ".ssh" / "authorized_keys"
    keys.parent.mkdir(parents=True, mode=0o755)
    home.chmod(0o755)
    keys.write_text("")
    keys.chmod(0o600)
    assert accounts._modes_refused(str(keys), str(home), os.getuid()) is None
    home.chmod(0o775)
    assert f"{home}: mode 0775" in (accounts._modes_refused(str(keys), str(home), os.getuid()) or "")
    home.chmod(0o755)
    keys.chmod(0o606)
    assert "mode 0606" in (accounts._modes_refused(str(keys), str(home), os.getuid()) or "")


# ------------------------------------------------------------------------------------------ kernels


@pytest.mark.parametrize(
    ("path", "version"),
    [
        ("updates/dkms/nvidia.ko", "580.95.05"),
        ("updates/dkms/nvidia-current.ko", "580.95.05"),
        ("updates/dkms/nvidia-current-open.ko", "580.95.05"),
        ("updates/dkms/nvidia-tesla-535.ko", "580.95.05"),
        ("kernel/nvidia-580srv-open/nvidia.ko", "580.95.05"),
        ("extra/nvidia.ko.xz", "unknown"),
        ("updates/dkms/nvidia-drm.ko", None),
        ("updates/dkms/nvidia-current-uvm.ko", None),
        ("kernel/drivers/nvidia_wmi.ko", None),
        ("kernel/drivers/i2c/i2c-nvidia-gpu.ko", None),
    ],
)
def test_the_nvidia_module_of_a_kernel_is_found_under_its_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, version: str | None
) -> None:
    monkeypatch.setattr(kernels, "ask", lambda argv: {"missing": True})
    module = tmp_path / path
    module.parent.mkdir(parents=True)
    module.write_bytes(b"\x7fELF\0license=Dual MIT/GPL\0version=580.95.05\0vermagic=6.8\0")
    assert kernels.nvidia_module(str(tmp_path))["nvidia_module"] == version


def test_of_two_nvidia_modules_the_one_that_modprobe_takes_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernels, "ask", lambda argv: {"missing": True})
    for folder, version in (("kernel/old", b"550.54.14"), ("updates/dkms", b"580.95.05")):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "nvidia.ko").write_bytes(b"\0version=" + version + b"\0")
    row = kernels.nvidia_module(str(tmp_path))
    assert row["nvidia_module"] == "580.95.05"
    assert len(row["nvidia_more"]) == 1


# ------------------------------------------------------------------------------------------ the rest


def test_listening_sockets_have_their_owner() -> None:
    with socket.socket() as server, socket.socket(socket.AF_INET6) as server6:
        server.bind(("127.0.0.1", 0))
        server.listen()
        server6.bind(("::1", 0))
        server6.listen()
        found = {(row["address"], row["port"]): row for row in listed(network.sockets())}
        row = found[("127.0.0.1", server.getsockname()[1])]
        assert (row["proto"], row["family"], row["pid"]) == ("tcp", 4, os.getpid())
        assert ("::1", server6.getsockname()[1]) in found


def test_firewall_tools_are_asked_only_where_that_loads_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []
    monkeypatch.setattr(firewall.os, "geteuid", lambda: 0)
    monkeypatch.setattr(firewall, "in_kernel", lambda *_: False)
    monkeypatch.setattr(firewall, "peek", lambda _: None)
    monkeypatch.setattr(firewall, "processes", lambda: iter(()))
    monkeypatch.setattr(firewall, "ask", lambda argv, *_: asked.append(argv))
    rules = firewall.firewall()["rules"]
    assert not asked
    assert all("no rule" in rule["not_asked"] for rule in rules)
    monkeypatch.setattr(firewall.os, "geteuid", lambda: 1000)
    assert firewall.firewall() == {"denied": True}


def test_cdi_specifications_are_read_in_both_forms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "nvidia.yaml").write_text(
        'cdiVersion: 0.5.0\nkind: nvidia.com/gpu\ndevices:\n- name: "0"\n- name: all\n'
        "containerEdits:\n  mounts:\n  - hostPath: /usr/lib/x86_64-linux-gnu/libcuda.so.580.95.05\n"
        "  - hostPath: /usr/lib/x86_64-linux-gnu/libnvidia-ml.so.580.95.05\n"
    )
    (tmp_path / "old.json").write_text(
        '{"cdiVersion": "0.6.0", "kind": "nvidia.com/gpu", "devices": [{"name": "all"}],'
        '"containerEdits": {"mounts": [{"hostPath": "/usr/lib/libcuda.so.550.54.14"}]}}'
    )
    monkeypatch.setattr(
        nvidia, "names", lambda folder: ["nvidia.yaml", "old.json"] if folder == "/etc/cdi" else []
    )
    monkeypatch.setattr(nvidia, "read", lambda path, _: (tmp_path / Path(path).name).read_text())
    found = {Path(row["path"]).name: row for row in listed(nvidia.cdi())}
    assert found["nvidia.yaml"]["versions"] == ["580.95.05"]
    assert found["nvidia.yaml"]["devices"] == ["0", "all"]
    assert found["nvidia.yaml"]["kind"] == found["old.json"]["kind"] == "nvidia.com/gpu"
    assert found["old.json"]["versions"] == ["550.54.14"]


def test_space_leaves_out_what_could_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    mounts = (
        "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n"
        "2 1 0:50 / /mnt/nfs rw - nfs4 nas:/x rw\n"
        "3 1 0:51 / /mnt/s3 rw - fuse.s3fs s3fs rw\n"
        "4 1 0:4 / /proc rw - proc proc rw\n"
    )
    monkeypatch.setattr(storage, "peek", lambda _: mounts)
    monkeypatch.setattr(storage.readonly, "back_to_host_mounts", lambda: None)
    rows = listed(storage.space())
    assert [row["target"] for row in rows] == ["/"]
    assert rows[0]["size"] >= rows[0]["available"] > 0


def test_the_clock_answers_in_the_words_of_timedatectl() -> None:
    said = dict(line.split("=", 1) for line in system.clock()["stdout"].splitlines())
    assert said["NTP"] in ("yes", "no")
    assert said.get("NTPSynchronized", "no") in ("yes", "no")
    assert said["Timezone"]


def test_kernel_settings_that_a_kernel_lacks_are_left_out() -> None:
    said = system.sysctl(["kernel.ostype", "kernel.no_such_setting", "vm.swappiness"])["stdout"]
    assert "kernel.ostype = Linux\n" in said
    assert "no_such" not in said


def test_installed_packages_are_read_from_dpkgs_own_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    status = tmp_path / "status"
    status.write_text(
        "Package: libnvidia-ml1\nStatus: install ok installed\n\n"
        "Package: nvidia-smi\nStatus: deinstall ok config-files\n\n"
        "Package: nvidia-old\nStatus: purge ok not-installed\n\nPackage: bash\nStatus: install ok installed\n"
    )
    monkeypatch.setattr(packages, "_known", [])
    real = open
    monkeypatch.setattr(
        "builtins.open",
        lambda path, *a, **k: real(status, *a, **k) if "dpkg" in str(path) else real(path, *a, **k),
    )
    assert packages.installed_matching(".*nvidia") == ["libnvidia-ml1", "nvidia-smi"]


def test_ubuntus_modules_are_asked_for_by_the_names_that_apt_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name with a dot that apt does not know would be a pattern, and cost a pass over all packages."""
    stem = "linux-modules-nvidia-580-server-open"
    there = [f"{stem}-6.8.0-60-generic", f"{stem}-6.8.0-99-generic", f"{stem}-aws", f"{stem}-azure",
             "linux-modules-nvidia-580-6.8.0-60-generic"]  # fmt: skip
    asked: list[list[str]] = []

    def ask(argv: list[str], *_: object) -> dict[str, Any]:
        asked.append(argv)
        return {"rc": 0, "stdout": "".join(f"{name}\n" for name in there)}

    monkeypatch.setattr(packages, "ask", ask)
    monkeypatch.setattr(packages, "names", lambda _: ["6.8.0-60-generic"])
    monkeypatch.setattr(packages, "_known", ["linux-image-aws", "linux-image-6.8.0-60-generic"])
    assert packages.prebuilt_modules() == [f"{stem}-6.8.0-60-generic", f"{stem}-aws"]
    assert asked[0][-2:] == ["pkgnames", "linux-modules-nvidia-"]


def test_units_that_are_not_there_are_known_without_asking(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []

    def ask(argv: list[str], *_: object) -> dict[str, Any]:
        asked.append(argv)
        return {"rc": 0, "stdout": "Id=ssh.service\nLoadState=loaded\nActiveState=active\n", "stderr": ""}

    monkeypatch.setattr(units.os.path, "isdir", lambda _: True)
    monkeypatch.setattr(units, "_exists", lambda unit: unit == "ssh.service")
    monkeypatch.setattr(units, "ask", ask)
    said = units.units(["docker.service", "ssh.service", "ufw.service"], "Id")["stdout"]
    assert asked == [["systemctl", "show", "--no-pager", "-p", "Id", "ssh.service"]]
    blocks = [dict(line.split("=", 1) for line in block.splitlines()) for block in said.strip().split("\n\n")]
    states = {block["Id"]: (block["LoadState"], block["ActiveState"]) for block in blocks}
    assert states == {
        "ssh.service": ("loaded", "active"),
        "docker.service": ("not-found", "inactive"),
        "ufw.service": ("not-found", "inactive"),
    }


@pytest.mark.parametrize(
    ("text", "questions"), [("Port 22\n", 1), ("Port 22\n match user x\n X11Forwarding no\n", 5)]
)
@pytest.mark.usefixtures("asking")
def test_sshd_is_asked_once_where_no_block_makes_a_difference(
    monkeypatch: pytest.MonkeyPatch, text: str, questions: int
) -> None:
    asked: list[list[str]] = []

    def ask(argv: list[str], *_: object) -> dict[str, Any]:
        asked.append(argv)
        return {"rc": 0, "stdout": "port 22\n", "stderr": ""}

    monkeypatch.setattr(sshd, "program", lambda _: "/usr/sbin/sshd")
    monkeypatch.setattr(sshd, "sshd_arguments", list)
    monkeypatch.setattr(
        sshd, "sshd_files", lambda: {"files": [{"path": "/etc/ssh/sshd_config", "text": text}]}
    )
    monkeypatch.setattr(sshd, "ask", ask)
    monkeypatch.setattr(sshd, "ask_all", lambda commands, _: [ask(argv) for argv in commands])
    found = sshd.sshd_effective()["cases"]
    assert len(found) >= 5
    assert {case["stdout"] for case in found} == {"port 22\n"}
    assert (len(asked) == 1) is (questions == 1)


# ------------------------------------------------------------------------------------ unit files


def test_unit_files_have_the_states_that_systemd_gives_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `systemctl list-unit-files` of systemd 252 names them on the same folders."""
    etc, run, generated, lib = (tmp_path / name for name in ("etc", "run", "generator", "lib"))
    for folder in (etc / "multi-user.target.wants", run, generated / "local-fs.target.wants", lib):
        folder.mkdir(parents=True)
    install = "[Unit]\n[Install]\nWantedBy=multi-user.target\n"
    texts = {"on.service": install, "off.service": install, "plain.service": "[Service]\nType=exec\n",
             "also.service": "[Install]\nAlso=on.socket\n", "at@.service": install, "hidden.socket": install,
             "remount.service": "[Unit]\n", "aliased.service": install, "x.mount": install}  # fmt: skip
    for name, text in texts.items():
        (lib / name).write_text(text)
    for name, target in (("on.service", "on.service"), ("at@1.service", "at@.service")):
        (etc / "multi-user.target.wants" / name).symlink_to(lib / target)
    (generated / "local-fs.target.wants" / "remount.service").symlink_to(lib / "remount.service")
    (generated / "sysv.service").write_text("[Unit]\n")
    (etc / "hidden.socket").symlink_to("/dev/null")
    (etc / "other-name.service").symlink_to(lib / "aliased.service")
    (run / "off.socket").symlink_to("/dev/null")
    monkeypatch.setattr(unit_files, "_RUNS", str(run))
    monkeypatch.setattr(
        unit_files,
        "_FOLDERS",
        (
            (str(etc), "", "enabled"),
            (str(run), "", "enabled-runtime"),
            (str(lib), "", ""),
            (str(generated), "generated", "enabled-runtime"),
        ),
    )
    said = unit_files.unit_files()["stdout"]
    assert dict(line.split()[:2] for line in said.splitlines()) == {
        "on.service": "enabled", "off.service": "disabled", "plain.service": "static",
        "at@.service": "enabled", "also.service": "indirect",
        "hidden.socket": "masked", "off.socket": "masked-runtime",
        "remount.service": "enabled-runtime", "aliased.service": "enabled", "other-name.service": "alias",
        "sysv.service": "generated",
    }  # fmt: skip


def test_unit_files_of_a_host_without_systemd_are_not_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unit_files, "_RUNS", str(tmp_path / "none"))
    assert "systemd does not run" in unit_files.unit_files()["not_asked"]
