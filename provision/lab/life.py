"""A lab host's life: claimed, made, booted, taken down; what was cut short is taken down by its record."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import Failure, Usage
from . import base, cgroups, keys, mounts, network, packages, settings
from .host import LabHost, all_hosts, load
from .shell import lock, plain_environment
from .sources import RELEASES

if TYPE_CHECKING:
    from collections.abc import Callable

    from .place import Place

NAME = re.compile(r"[a-z](?:[a-z0-9-]{0,30}[a-z0-9])?")
SUPERVISOR = Path(__file__).with_name("supervisor.sh")
DEFAULT_RELEASE = "bookworm"
BOOT_LIMIT = 60.0  # seconds; a host takes about one, twenty at once on two cores about fifteen


def making(place: Place, name: str) -> Path:
    """The lock that a run holds while it makes, boots or removes a host."""
    return place.run / f"{name}.lock"


def up(
    place: Place, name: str | None, release: str | None, gpus: str | None, say: Callable[[str], None]
) -> LabHost:
    """Makes a host and boots it, or boots again one that is off."""
    from . import double

    if release is not None and release not in RELEASES:
        raise Usage(f"no lab host has the release {release!r}", do=f"releases: {', '.join(RELEASES)}")
    if name is not None and not NAME.fullmatch(name):
        raise Usage(
            f"{name!r} is no host name", do="lower-case letters, digits, hyphens; 32 at most, a letter first"
        )
    spec = str(double.parse_gpus(gpus)) if gpus else None
    place.state.mkdir(mode=0o700, parents=True, exist_ok=True)
    known = load(place, name) if name else None
    root = None
    if known is None or not known.whole:
        root = base.ensure(place, release or DEFAULT_RELEASE, say)
        keys.lab_key(place)
    host, held = claim(place, name, release, spec, root)
    with held:
        was_there = host.whole
        try:
            if not was_there:
                make(host)
            boot(host)
            wait_for_ssh(host)
        except BaseException:
            if was_there:
                stop(host)
            else:
                remove(host)
            raise
    return host


def claim(
    place: Place, name: str | None, release: str | None, gpus: str | None, root: Path | None
) -> tuple[LabHost, ExitStack]:
    """Takes a name and an address that no other host has, on disk before anything is made.

    Returns the host and the lock on it, which the caller lets go of. A host that is off is claimed as it is.
    """
    from . import double

    with lock(place.state / "lock"), ExitStack() as held:
        place.hosts.mkdir(parents=True, exist_ok=True)
        clear_debris(place)
        there = {host.name: host for host in all_hosts(place)}
        name = name or next(x for i in range(1, 1000) if (x := f"gpu{i:02d}") not in there)
        if not held.enter_context(lock(making(place, name), wait=False)):
            raise Failure("another run is making or removing this lab host", host=name)
        if host := there.get(name):
            if host.state != "off":
                raise Failure("a lab host of this name runs", host=name, do=f"gpu-provision lab down {name}")
            if (release or host.release, gpus or host.gpus) != (host.release, host.gpus):
                raise Failure(
                    f"the lab host that is off has {host.release} and {host.gpus}",
                    host=name,
                    do=f"gpu-provision lab down {name}, or start it without --release and --gpus",
                )
        else:
            used = {host.number for host in there.values()}
            number = next((i for i in range(network.FIRST, network.LAST + 1) if i not in used), None)
            if number is None:
                raise Failure("the lab is full", do="gpu-provision lab down NAME")
            if root is None:
                raise Failure("another run has taken this lab host down", host=name)
            release, gpus = release or DEFAULT_RELEASE, gpus or double.DEFAULT_GPUS
            host = LabHost(place, name, release, gpus, number, network.address(place, number), root.name)
            host.folder.mkdir(mode=0o755)
            host.save()
        settings.raise_(place)
        network.up(place)
        base.forget_old(place, {host.base, *(other.base for other in there.values())})
        return host, held.pop_all()


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
            # cgroup2 alone in the host, as Debian boots, also where this machine still has the old hierarchies.
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


def down(place: Place, name: str) -> None:
    """Takes one host down; the last one takes bridge, rules and raised settings with it."""
    if load(place, name) is None:
        raise Failure("there is no lab host of this name", host=name, do="gpu-provision lab list")
    with lock(making(place, name)):
        if host := load(place, name):
            remove(host)
    with lock(place.state / "lock"):
        clear_debris(place)
        if not all_hosts(place):
            leave(place)


def down_all(place: Place) -> None:
    """Takes every host down, half-made ones too, and all that the lab changed on this machine."""
    if not place.state.exists():
        return
    for host in all_hosts(place):
        with lock(making(place, host.name)):
            remove(host)
    with lock(place.state / "lock"):
        clear_debris(place)
        if not all_hosts(place):
            leave(place)


def leave(place: Place) -> None:
    for name in cgroups.named(f"gpu-provision-{place.bridge}-"):
        cgroups.end(name)
    mounts.clear(place.hosts)
    network.down(place)
    settings.put_back(place)
    shutil.rmtree(place.run, ignore_errors=True)


def clear_debris(place: Place) -> None:
    """Removes what runs that were killed left behind. The caller holds the lab's lock."""
    for folder in [path for path in place.hosts.glob("*") if path.is_dir()]:  # hidden ones too
        host = load(place, folder.name)
        if host is None:
            mounts.clear(folder)
            delete(folder)
        elif not host.whole:
            with lock(making(place, host.name), wait=False) as free:
                if free:
                    remove(host)
