"""The main job, from the wheel alone: two bare hosts of different kinds become proven GPU servers."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import venv
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from provision import lab

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provision.lab import LabHost

TREE = Path(__file__).parents[2]
MINUTES = 60
# What a lab host can reach without an archive of the tests' own.
DEBIAN = ("--set", "nvidia_driver_source=debian")
# What a login, a journal or a clock writes by itself, and what is only there while the host runs.
VOLATILE = (
    "run",
    "tmp",
    "var/log",
    "var/tmp",
    "dev",
    "proc",
    "sys",
    "root/.ansible",
    "var/lib/systemd/timers",
)


@dataclass(frozen=True)
class Command:
    """`gpu-provision` as a wheel installed it, far from the tree."""

    python: Path
    home: Path

    def __call__(self, *arguments: str, timeout: float = 10 * MINUTES) -> subprocess.CompletedProcess[str]:
        env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": str(self.home), "LANG": "C.UTF-8"}
        return subprocess.run(
            [self.python.parent / "gpu-provision", *arguments],
            cwd=self.home,
            env=env,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=timeout,
        )


@dataclass(frozen=True)
class Bootstrapped:
    hosts: tuple[LabHost, ...]
    names: tuple[str, ...]
    run: subprocess.CompletedProcess[str]
    report: dict[str, Any]


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> Command:
    home = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--outdir", str(home), str(TREE)]
    subprocess.run(build, check=True, capture_output=True)
    venv.create(home / "venv", with_pip=True)
    python = home / "venv" / "bin" / "python"
    [wheel] = home.glob("*.whl")
    subprocess.run([python, "-m", "pip", "install", "-q", str(wheel)], check=True, capture_output=True)
    return Command(python, home)


@pytest.fixture(scope="module")
def bootstrapped(command: Command) -> Iterator[Bootstrapped]:
    names = ("boot-a", "boot-b")
    hosts = (
        lab.up(names[0], release="bookworm", gpus="A100-SXM4-80GB:2"),
        lab.up(names[1], release="trixie", gpus="T4:1"),
    )
    try:
        run = command(
            "bootstrap",
            *names,
            "--profile",
            "training",
            *DEBIAN,
            "--yes",
            "--format",
            "json",
            timeout=25 * MINUTES,
        )
        yield Bootstrapped(hosts, names, run, json.loads(run.stdout) if run.stdout else {})
    finally:
        for name in names:
            lab.down(name)


def contents(host: LabHost) -> dict[str, tuple[Any, ...]]:
    """Every file that the host has of its own: kind and mode, owner, size, time of change, target or text."""
    found: dict[str, tuple[Any, ...]] = {}
    for path in sorted(host.layer.rglob("*")):
        name = str(path.relative_to(host.layer))
        if name in VOLATILE or name.startswith(tuple(f"{v}/" for v in VOLATILE)):
            continue
        stat = path.lstat()
        text = (
            path.read_bytes() if name.startswith("etc/") and path.is_file() and not path.is_symlink() else b""
        )
        when = () if path.is_dir() else (stat.st_size, stat.st_mtime_ns)
        found[name] = (stat.st_mode, stat.st_uid, stat.st_gid, *when, text)
    return found


def findings(report: dict[str, Any], host: str) -> dict[str, dict[str, Any]]:
    [judged] = [h for h in report["hosts"] if h.get("host") == host]
    judgement = judged.get("judgement", judged)
    return {f["control"]: f for f in judgement["findings"]}


def test_both_hosts_end_proven(bootstrapped: Bootstrapped) -> None:
    assert bootstrapped.run.returncode == 0, bootstrapped.run.stderr[-3000:]
    for host in bootstrapped.report["hosts"]:
        assert host["state"] == "done"
        assert set(host["planned"]) == {
            "snapshot",
            "nvidia_driver",
            "gpu_settings",
            "ssh_hardening",
            "firewall",
            "nccl",
            "limits",
            "profiling_tools",
        }
        assert host["checks"]
        assert {check["status"] for check in host["checks"]} <= {"passed", "skipped"}
        bad = [f for f in host["judgement"]["findings"] if f["status"] in ("fail", "unknown")]
        assert not bad, bad


def test_progress_goes_to_stderr_and_one_document_to_stdout(bootstrapped: Bootstrapped) -> None:
    assert "nvidia_driver" in bootstrapped.run.stderr
    assert bootstrapped.report["schema"] == "gpu-provision/run/1"


def test_the_run_directory_is_private_and_whole(bootstrapped: Bootstrapped) -> None:
    directory = Path(bootstrapped.report["directory"])
    assert directory.stat().st_mode & 0o777 == 0o700
    kept = {p.name for p in directory.iterdir()}
    assert {"plan.json", "events.jsonl", "recordings", "report.json", "state.json"} <= kept
    assert all(p.stat().st_mode & 0o077 == 0 for p in directory.rglob("*") if p.is_file())


def test_a_second_run_has_an_empty_plan_and_changes_nothing(
    command: Command, bootstrapped: Bootstrapped
) -> None:
    before = [contents(host) for host in bootstrapped.hosts]
    run = command("bootstrap", *bootstrapped.names, "--profile", "training", *DEBIAN, "--format", "json")
    assert run.returncode == 0, run.stderr
    for host in json.loads(run.stdout)["hosts"]:
        assert host["state"] == "done"
        assert host["planned"] == []
        assert host["passes"] == []
    for host, then in zip(bootstrapped.hosts, before, strict=True):
        now = contents(host)
        assert {n for n in {*then, *now} if then.get(n) != now.get(n)} == set()


@pytest.mark.parametrize(
    ("settings", "role"),
    [
        (("gpu_settings_clocks=none",), "gpu_settings"),
        (("gpu_settings_persistence=false", "gpu_settings_clocks=none"), "gpu_settings"),
        (("nccl_variables={NCCL_DEBUG: WARN}",), "nccl"),
        (("firewall_allow=[{port: 8888}]",), "firewall"),
        (("nvidia_driver_modules=open",), "nvidia_driver"),
    ],
)
def test_a_changed_variable_plans_its_role(
    command: Command, bootstrapped: Bootstrapped, settings: tuple[str, ...], role: str
) -> None:
    given = [word for setting in settings for word in ("--set", setting)]
    run = command("plan", bootstrapped.names[0], "--profile", "training", *DEBIAN, *given)
    assert run.returncode == 0, run.stderr
    assert role in run.stdout


def test_audit_agrees(command: Command, bootstrapped: Bootstrapped) -> None:
    run = command("audit", *bootstrapped.names, "--profile", "training", *DEBIAN, "--format", "json")
    assert run.returncode == 0, run.stderr
    report = json.loads(run.stdout)
    for name in bootstrapped.names:
        assert findings(report, name)["driver.next-boot"]["status"] == "pass"
        assert findings(report, name)["ssh.password-login"]["status"] == "pass"


def test_settings_are_back_after_a_reboot(command: Command, bootstrapped: Bootstrapped) -> None:
    run = command("verify", bootstrapped.names[0], "--profile", "training", *DEBIAN, "--disruptive", "--yes")
    assert run.returncode == 0, run.stdout + run.stderr


def test_the_built_collection_converges_a_host_from_a_plain_playbook(tmp_path: Path) -> None:
    galaxy = [sys.executable, "-m", "ansible", "galaxy", "collection"]
    subprocess.run([*galaxy, "build", "--output-path", tmp_path, TREE], check=True, capture_output=True)
    [archive] = tmp_path.glob("*.tar.gz")
    subprocess.run([*galaxy, "install", "-p", tmp_path / "c", archive], check=True, capture_output=True)
    host = lab.up("boot-c", release="trixie")
    short = tempfile.mkdtemp(prefix="gp-")
    try:
        target = host.target()
        options = " ".join(f"-o {option}" for option in target.options)
        hosts = {
            "boot-c": {
                "ansible_host": target.address,
                "ansible_user": target.user,
                "ansible_ssh_private_key_file": target.identity,
                "ansible_ssh_common_args": options,
            }
        }
        (tmp_path / "hosts.yml").write_text(yaml.safe_dump({"all": {"hosts": hosts}}))
        play = {"hosts": "all", "gather_facts": False, "roles": ["gpu_provision.host.ssh_hardening"]}
        (tmp_path / "play.yml").write_text(yaml.safe_dump([play]))
        run = subprocess.run(
            [sys.executable, "-P", "-m", "ansible", "playbook", "-i", "hosts.yml", "play.yml"],
            cwd=tmp_path,
            env={
                "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
                "HOME": str(tmp_path),
                "LANG": "C.UTF-8",
                "ANSIBLE_COLLECTIONS_PATH": str(tmp_path / "c"),
                # Below HOME, as is usual, a socket's path would be too long here.
                "ANSIBLE_SSH_CONTROL_PATH_DIR": short,
            },
            capture_output=True,
            text=True,
        )
        assert run.returncode == 0, run.stdout + run.stderr
        assert (host.root / "etc/ssh/sshd_config.d/00-gpu-provision.conf").is_file()
        known = [word for option in target.options for word in ("-o", option)]
        key_away = ["ssh", "-o", "BatchMode=yes", "-o", "PubkeyAuthentication=no", *known]
        refused = subprocess.run(
            [*key_away, f"{target.user}@{target.address}", "true"], capture_output=True, text=True
        )
        assert "Permission denied (publickey)" in refused.stderr
    finally:
        shutil.rmtree(short)
        lab.down("boot-c")
