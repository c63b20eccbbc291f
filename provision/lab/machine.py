"""One lab host's parts on this machine: its files, its supervisor, and their end."""

from __future__ import annotations

import shutil
import socket
import time
from typing import TYPE_CHECKING

from ..errors import Failure
from . import cgroups, keys, kinds, network

if TYPE_CHECKING:
    from pathlib import Path

    from .host import LabHost


def make(host: LabHost) -> None:
    """Lays the host's file system and writes what is its own."""
    from . import double

    kind = kinds.of(host.kind)
    for folder in (host.root, host.double):
        folder.mkdir(mode=0o755, exist_ok=True)
    kind.lay(host)
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
    (etc / "network/interfaces.d" / kind.INTERFACE).write_text(
        f"{kind.RAISED} {kind.INTERFACE}\niface {kind.INTERFACE} inet static\n"
        f"\taddress {host.address}/{net.prefixlen}\n\tgateway {net[1]}\n"
    )
    double.install(host.root, double.parse_gpus(host.gpus), host.release, state=kind.double(host))
    keys.learn(host.place, host.address, host.root)
    (host.folder / "whole").touch()


def boot(host: LabHost) -> None:
    """Starts the host's supervisor, which outlives this process."""
    kinds.of(host.kind).start(host)


def wait_for_ssh(host: LabHost) -> None:
    """Returns when the host's sshd answers; raises Failure with the console's last lines otherwise."""
    started = time.monotonic()
    while time.monotonic() - started < kinds.of(host.kind).BOOT_LIMIT:
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
    kinds.of(host.kind).clear(host)


def remove(host: LabHost) -> None:
    """Ends everything of a host and removes it; keeps the package files that it fetched."""
    stop(host)
    kinds.of(host.kind).leave(host)
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
