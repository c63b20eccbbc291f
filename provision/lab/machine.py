"""One lab host's parts on this machine: its files, its supervisor, and their end."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import Failure
from . import base, cgroups, keys, mounts, network, packages
from .host import all_hosts
from .shell import plain_environment

if TYPE_CHECKING:
    from .host import LabHost

SUPERVISOR = Path(__file__).with_name("supervisor.sh")
BOOT_LIMIT = (
    180.0  # seconds; a host takes about one, but twenty at once on a busy machine wait for each other
)


def make(host: LabHost) -> None:
    """Lays the host's file system and writes what is its own."""
    from . import double

    for folder in (host.layer, host.folder / "work", host.root, host.double):
        folder.mkdir(mode=0o755, exist_ok=True)
    for other in all_hosts(host.place):
        if other.release == host.release:
            packages.harvest(host.place.packages(host.release), other.layer)
    packages.lend(host.place.packages(host.release), host.layer)
    lay(host)
    password = keys.give(host.place, host.root)
    secret = host.folder / "password"
    secret.touch(mode=0o600)
    secret.write_text(password + "\n")
    etc = host.root / "etc"
    (etc / "hostname").write_text(f"{host.name}\n")
    (etc / "hosts").write_text(
        f"127.0.0.1\tlocalhost\n127.0.1.1\t{host.name}\n::1\tlocalhost ip6-localhost ip6-loopback\n"
        + network.known_names()
    )
    (etc / "resolv.conf").write_text(network.name_servers())
    net = network.subnet(host.place)
    (etc / "network/interfaces.d/host0").write_text(
        f"auto host0\niface host0 inet static\n\taddress {host.address}/{net.prefixlen}\n\tgateway {net[1]}\n"
    )
    double.install(host.root, double.parse_gpus(host.gpus), host.release, state=host.double)
    keys.learn(host.place, host.address, host.root)
    (host.folder / "whole").touch()


def lay(host: LabHost) -> None:
    mounts.lay(host.place.bases / host.base, host.layer, host.folder / "work", host.root)


def boot(host: LabHost) -> None:
    """Starts the host's supervisor, which starts systemd-nspawn and outlives this process."""
    from . import double

    nspawn = [
        "systemd-nspawn", "--quiet", "--keep-unit", "--register=no", "--boot", f"--directory={host.root}",
        f"--machine={host.machine}", f"--hostname={host.name}", f"--network-bridge={host.place.bridge}",
        "--resolv-conf=off", "--timezone=off", "--link-journal=no", "--console=read-only",
        # What docker needs in a host, beside what nspawn allows anyhow.
        "--system-call-filter=@keyring bpf",
        f"--bind={host.place.compiler_cache}:{base.COMPILER_CACHE}",
        *double.nspawn_binds(host.double),
    ]  # fmt: skip
    if not host.root.is_mount():
        lay(host)
    host.place.compiler_cache.mkdir(exist_ok=True)
    procs = " ".join(str(path) for path in cgroups.make(host.cgroup))
    with host.console.open("ab") as console:
        subprocess.Popen(
            ["sh", str(SUPERVISOR), procs, *nspawn],
            stdin=subprocess.DEVNULL,
            stdout=console,
            stderr=console,
            cwd="/",
            # cgroup2 alone in the host, as Debian boots, also where this machine has the old hierarchies.
            env={**plain_environment(), "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY": "1"},
            start_new_session=True,
        )


def wait_for_ssh(host: LabHost) -> None:
    """Returns when the host's sshd answers; raises Failure with the console's last lines otherwise."""
    started = time.monotonic()
    while time.monotonic() - started < BOOT_LIMIT:
        try:
            with socket.create_connection((host.address, 22), timeout=1) as connection:
                if connection.recv(4) == b"SSH-":
                    return
        except OSError:
            pass
        if time.monotonic() - started > 2 and not cgroups.members(host.cgroup):
            break
        time.sleep(0.02)
    lines = host.console.read_text(errors="replace").splitlines()[-8:]
    raise Failure("the lab host did not boot:\n  " + "\n  ".join(lines), host=host.name)


def stop(host: LabHost) -> None:
    """Ends everything of a host that runs; its files stay."""
    cgroups.end(host.cgroup)
    network.drop_link(host.link)
    mounts.clear(host.folder)


def remove(host: LabHost) -> None:
    """Ends everything of a host and removes it; keeps the package files that it fetched."""
    stop(host)
    for leftover in ("propagate", "unix-export"):
        path = Path("/run/systemd/nspawn") / leftover / host.machine
        if path.is_dir():
            path.rmdir()
    packages.harvest(host.place.packages(host.release), host.layer)
    keys.forget(host.place, host.address)
    if host.folder.exists():
        gone = host.folder.with_name(f".gone-{host.name}-{time.time_ns()}")
        host.folder.rename(gone)
        delete(gone)


def delete(folder: Path) -> None:
    """Deletes a folder which another run may be deleting too."""

    def went(_: object, __: str, error: tuple[type[BaseException], BaseException, object]) -> None:
        if not isinstance(error[1], FileNotFoundError):
            raise error[1]

    shutil.rmtree(folder, onerror=went)
