"""What a lab host is: booted in no time, reached by strict SSH, itself after a reboot, one of many."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from provision import lab
from provision.errors import Failure
from provision.lab import cgroups
from provision.transport.ssh import fresh_args

if TYPE_CHECKING:
    from collections.abc import Callable

    from provision.lab import LabHost

COMMAND = [sys.executable, "-m", "provision", "lab"]


def on(host: LabHost, command: str) -> str:
    done = subprocess.run([*fresh_args(host.target()), command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def wait_until(true: Callable[[], bool], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.fixture(scope="module", params=["bookworm", "trixie"])
def host(request: pytest.FixtureRequest, lab_up: Callable[..., LabHost]) -> LabHost:
    return lab_up(release=request.param)


def test_the_host_is_a_booted_debian_of_its_release(host: LabHost) -> None:
    assert f"VERSION_CODENAME={host.release}" in on(host, "cat /etc/os-release")
    assert on(host, "hostname") == host.name
    wait_until(lambda: "starting" not in on(host, "systemctl is-system-running || true"))
    assert on(host, "systemctl is-system-running") == "running", on(host, "systemctl --failed")
    assert on(host, "getent hosts $(hostname)").endswith(host.name)
    assert on(host, "stat -f -c %T /sys/fs/cgroup") == "cgroup2fs"


def test_debian_kernels_have_their_headers(host: LabHost) -> None:
    assert on(host, "for k in /lib/modules/*; do test -e $k/build/Makefile || echo $k; done; ls /lib/modules")
    assert "nvidia" not in on(host, "dpkg-query -W -f='${Package}\\n'").lower()


def test_packages_come_from_the_archive(host: LabHost) -> None:
    policy = on(host, "apt-get -q update >&2 && apt-cache policy nvidia-kernel-dkms")
    assert re.search(r"Candidate: \d", policy)


def test_root_has_a_password_that_sshd_refuses_for_root(host: LabHost) -> None:
    assert on(host, "passwd -S root").split()[1] == "P"
    effective = on(host, "sshd -T")
    assert "permitrootlogin without-password" in effective
    assert "passwordauthentication yes" in effective
    assert len(host.password) >= 12


def test_a_host_key_that_the_lab_does_not_know_is_refused(host: LabHost, tmp_path: Path) -> None:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / "key")], check=True)
    other = tmp_path / "known_hosts"
    other.write_text(f"{host.address} {(tmp_path / 'key.pub').read_text()}")
    argv = [word.replace(str(host.place.known_hosts), str(other)) for word in fresh_args(host.target())]
    done = subprocess.run([*argv, "true"], capture_output=True, text=True, check=False)
    assert done.returncode == 255
    assert "Host key verification failed" in done.stderr


def test_reboot(host: LabHost) -> None:
    before = on(host, "touch /run/gone /root/stays; cat /proc/sys/kernel/random/boot_id")
    subprocess.run([*fresh_args(host.target()), "systemctl reboot"], check=False, capture_output=True)
    started = time.monotonic()

    def back() -> bool:
        said = subprocess.run(
            [*fresh_args(host.target()), "cat /proc/sys/kernel/random/boot_id"],
            capture_output=True,
            text=True,
            check=False,
        )
        return said.returncode == 0 and said.stdout.strip() != before

    wait_until(back)
    assert time.monotonic() - started < 20
    assert on(host, "test ! -e /run/gone && ls /root/stays") == "/root/stays"


def test_ssh_passes_standard_input_and_the_exit_code(host: LabHost) -> None:
    done = subprocess.run(
        [*COMMAND, "ssh", host.name, "--", "tr a-z A-Z; exit 7"],
        input="bytes",
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (7, "BYTES")


def test_off_and_on_again(host: LabHost) -> None:
    on(host, "echo kept > /root/kept; sync")
    subprocess.run([*fresh_args(host.target()), "systemctl poweroff"], check=False, capture_output=True)
    wait_until(lambda: host.state == "off")
    with pytest.raises(Failure, match="that is off has"):
        lab.up(host.name, gpus="T4:1")
    again = lab.up(host.name)
    assert again.address == host.address
    assert on(host, "cat /root/kept") == "kept"


def test_a_taken_name_is_refused(host: LabHost) -> None:
    done = subprocess.run([*COMMAND, "up", host.name], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert f"{host.name}: a lab host of this name runs" in done.stderr
    assert "Traceback" not in done.stderr
    assert on(host, "true") == ""


def test_list_shows_the_host(host: LabHost) -> None:
    listed = subprocess.run([*COMMAND, "list"], capture_output=True, text=True, check=True).stdout
    line = next(line for line in listed.splitlines() if line.startswith(host.name))
    assert line.split() == [host.name, "running", "container", host.release, host.address, host.gpus]


@pytest.mark.alone
@pytest.mark.usefixtures("own_lab")
def test_up_takes_less_than_three_seconds() -> None:
    """Of CPU and waiting of its own: what other runs on the machine take at the same time is not counted."""
    lab.up("first")
    best = 1e9
    for _ in range(3):
        started = time.monotonic()
        subprocess.run([*COMMAND, "up", "timed"], check=True, stdout=subprocess.DEVNULL)
        best = min(best, time.monotonic() - started)
        lab.down("timed")
    cores = os.cpu_count() or 1
    assert best < 3 * max(1.0, os.getloadavg()[0] / cores)


@pytest.mark.alone
@pytest.mark.usefixtures("own_lab")
def test_twenty_hosts_at_once() -> None:
    runs = [subprocess.Popen([*COMMAND, "up"], stdout=subprocess.PIPE, text=True) for _ in range(20)]
    lines = [run.communicate()[0].split("\t") for run in runs]
    assert [run.returncode for run in runs] == [0] * 20
    assert len({line[0] for line in lines}) == 20
    assert len({line[1] for line in lines}) == 20
    hosts = lab.hosts()
    assert [on(host, "hostname") for host in hosts] == [host.name for host in hosts]
    pids = {pid for host in hosts for pid in cgroups.members(host.cgroup)}
    assert sum(proportional_kib(pid) for pid in pids) < 2 * 1024 * 1024


def proportional_kib(pid: int) -> int:
    """Memory of a process in KiB, with what it shares counted in proportion (PSS)."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0
    match = re.search(r"^Pss:\s+(\d+) kB", text, re.MULTILINE)
    return int(match[1]) if match else 0


@pytest.mark.usefixtures("own_lab")
def test_package_files_are_shared_between_hosts() -> None:
    first = lab.up()
    on(first, "apt-get -q -y --download-only install tree >&2")
    name = next(path.name for path in (first.layer / "var/cache/apt/archives").glob("tree_*.deb"))
    second = lab.up()
    shared = second.layer / "var/cache/apt/archives" / name
    assert shared.stat().st_ino == (first.layer / "var/cache/apt/archives" / name).stat().st_ino
    on(second, "apt-get -q -y --no-download install tree >&2")
