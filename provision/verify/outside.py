"""How a host's ports look from this machine: over which addresses it is reached, and what answers there."""

from __future__ import annotations

import ipaddress
import socket
import subprocess
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import Failure
from ..facts.known import Unknown
from ..transport.options import destination, options

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..facts import Facts
    from ..transport.target import Target

SECONDS = 3.0
TRIES = 3  # a datagram may be lost


@dataclass(frozen=True)
class Way:
    """An address of the host, and ours as it is used towards it. `stands`: sshd answered there just now."""

    address: str
    ours: str
    stands: bool

    @property
    def version(self) -> int:
        return version(self.address)


@dataclass(frozen=True)
class Dialled:
    """Where OpenSSH goes for a host, by ssh_config and the target's own options."""

    hostname: str
    port: int
    through: str
    """The jump host or the proxy's command in between; empty where there is none."""


def dialled(target: Target) -> Dialled:
    """Raises Failure where OpenSSH does not say."""
    argv = ["ssh", "-G", *options(target), *destination(target)]
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20)
    said = dict(line.split(" ", 1) for line in done.stdout.splitlines() if " " in line)
    if "hostname" not in said:
        raise Failure(f"OpenSSH does not say where the host is: {done.stderr.strip()}")
    through = [said[word] for word in ("proxyjump", "proxycommand") if said.get(word, "none") != "none"]
    return Dialled(said["hostname"], int(said["port"]), "".join(through[:1]))


def ways(where: Dialled, facts: Facts) -> tuple[Way, ...]:
    """One way for each family, where there is one; of several addresses the first at which sshd answers."""
    found: dict[int, Way] = {}
    for address in dict.fromkeys([*_resolved(where), *_of_host(facts)]):
        known = found.get(version(address))
        if known is None or not known.stands:
            way = _way(address, where.port)
            if way is not None and (known is None or way.stands):
                found[way.version] = way
    return tuple(found.values())


def opens(address: str, port: str, token: str | None) -> bool:
    """Whether `tcp:8000` can be reached: it gives the token or, without one, lets a connection be made.

    What stands in between may take a connection in the host's place; it does not know the token.
    """
    proto, _, number = port.partition(":")
    try:
        if proto == "udp":
            return token is not None and _datagram(address, int(number), token)
        with _connected(address, int(number)) as stream:
            return token is None or _received(stream) == token.encode()
    except OSError:
        return False


def version(address: str) -> int:
    """4 or 6, whatever interface is named behind it."""
    return ipaddress.ip_address(address.partition("%")[0]).version


def _resolved(where: Dialled) -> Iterator[str]:
    try:
        answers = socket.getaddrinfo(where.hostname, where.port, type=socket.SOCK_STREAM)
    except OSError as e:
        raise Failure(f"{where.hostname}: {e.strerror}") from e
    for answer in answers:
        # With its interface, which a link-local address is nothing without.
        yield socket.getnameinfo(answer[4], socket.NI_NUMERICHOST | socket.NI_NUMERICSERV)[0]


def _of_host(facts: Facts) -> Iterator[str]:
    """Addresses that no other machine here can have: private ones of IPv4 mean something else everywhere."""
    interfaces = () if isinstance(facts.interfaces, Unknown) else facts.interfaces
    for address in (a for i in interfaces if i.up for a in i.routable):
        if address.is_v6 or ipaddress.ip_address(address.ip).is_global:
            yield address.ip


def _way(address: str, port: int) -> Way | None:
    """None where there is no route to that address from here."""
    try:
        with _connected(address, port) as stream:
            return Way(address, stream.getsockname()[0], stands=True)
    except OSError:
        pass
    try:
        with _datagrams(address, port) as asked:
            return Way(address, asked.getsockname()[0], stands=False)
    except OSError:
        return None


def _connected(address: str, port: int) -> socket.socket:
    return socket.create_connection((address, port), SECONDS)


def _received(stream: socket.socket) -> bytes:
    found = b""
    while more := stream.recv(100):
        found += more
    return found


def _datagrams(address: str, port: int) -> socket.socket:
    family, kind, proto, _, where = socket.getaddrinfo(address, port, type=socket.SOCK_DGRAM)[0]
    made = socket.socket(family, kind, proto)
    try:
        made.connect(where)
    except OSError:
        made.close()
        raise
    return made


def _datagram(address: str, port: int, token: str) -> bool:
    with _datagrams(address, port) as asked:
        end = time.monotonic() + SECONDS
        asked.settimeout(SECONDS / TRIES)
        for _ in range(TRIES):
            try:
                asked.send(b"?")
                if asked.recv(100) == token.encode():
                    return True
            except TimeoutError:
                continue
            except OSError:
                # A refusal; another may be meant for an earlier datagram, so that one is not enough.
                time.sleep(max(0.0, min(0.2, end - time.monotonic())))
    return False
