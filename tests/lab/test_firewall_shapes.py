"""Role firewall on hosts of many shapes: who may come in does, over IPv4 and IPv6, nobody else does, rules
of others stay, and the administrator gets in on a fresh connection by plain OpenSSH whatever happens."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from firewall_shapes import ALLOW, SHAPES, Shape
from plays import Controller, wait_for

from provision.transport import ssh

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from _pytest.mark import ParameterSet

    from provision.lab import LabHost

# Listens on every port that the tests ask for, over both families; udp answers what it is sent.
SERVER = """
import selectors, socket
ready = selectors.DefaultSelector()
for kind, ports in ((socket.SOCK_STREAM, (8000, 8001, 9999)), (socket.SOCK_DGRAM, (7000, 9999))):
    for port in ports:
        s = socket.socket(socket.AF_INET6, kind)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.bind(("::", port))
        kind == socket.SOCK_STREAM and s.listen()
        ready.register(s, selectors.EVENT_READ)
while True:
    for key, _ in ready.select():
        if key.fileobj.type == socket.SOCK_STREAM:
            key.fileobj.accept()[0].close()
        else:
            key.fileobj.sendto(*key.fileobj.recvfrom(100))
"""
UNIT = "[Service]\nExecStart=/usr/bin/python3 /root/server\n[Install]\nWantedBy=multi-user.target\n"
# Prints how a connection to each PROTO:PORT of ADDRESS ends: open, refused or silent.
ASK = """
import socket, sys
def ask(address, proto, port):
    kind = socket.SOCK_STREAM if proto == "tcp" else socket.SOCK_DGRAM
    where = socket.getaddrinfo(address, int(port), type=kind)[0]
    s = socket.socket(where[0], kind)
    s.settimeout(1.5)
    try:
        s.connect(where[4])
        if proto == "udp":
            s.send(b"x")
            s.recv(9)
        return "open"
    except (ConnectionRefusedError, PermissionError):
        return "refused"
    except OSError as e:
        return "silent" if isinstance(e, TimeoutError) else "refused"
print(*[ask(sys.argv[1], *word.split(":")) for word in sys.argv[2:]])
"""
PORTS = ("tcp:8000", "tcp:8001", "tcp:9999", "udp:7000", "udp:9999")
STATE = """
cd /etc && find . -type f -not -path './gpu-provision/*.lock' -exec sha256sum {} + | sort
nft -s list ruleset | grep -v '^#'; systemctl list-unit-files --state=enabled --no-legend --plain | sort
"""


@pytest.fixture(scope="module")
def peer(lab_up: Callable[..., LabHost]) -> LabHost:
    """Another host, which the profile lets in to more than everybody."""
    return lab_up()


def on(host: LabHost, command: str, text: str = "") -> str:
    done = subprocess.run(
        [*ssh.fresh_args(host.target()), command], input=text, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def link_local(host: LabHost) -> str:
    found = json.loads(on(host, "ip -j -6 addr show dev host0 scope link"))
    return str(found[0]["addr_info"][0]["local"])


def seen(host: LabHost, viewer: LabHost | None, address: str) -> list[str]:
    """How each of PORTS looks from another lab host, or from this machine."""
    if viewer is None:
        argv = [sys.executable, "-c", ASK, address, *PORTS]
        return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.split()
    return on(viewer, f"python3 - {address} {' '.join(PORTS)}", ASK).split()


def check_access(host: LabHost, peer: LabHost, control: Controller, v6: str) -> None:
    assert control.login().holds, "the administrator gets in"
    ours, theirs = f"{v6}%{host.place.bridge}", f"{v6}%host0"
    from_peer, from_us = seen(host, peer, host.address), seen(host, None, host.address)
    assert [from_peer[1], from_peer[3]] == ["open", "open"], "8001 and 7000/udp are open for the peer"
    assert "open" not in (from_us[1], from_us[3]), "and for nobody else"
    for view in (from_peer, from_us, seen(host, peer, theirs), seen(host, None, ours)):
        assert view[0] == "open", "8000 is for everybody, over IPv4 and IPv6"
        assert "open" not in (view[2], view[4]), "nobody asked for 9999"


def theirs(control: Controller) -> set[str]:
    """The loaded rules of others, each with its table and chain."""
    table = chain = ""
    found = set()
    for line in control.shell("nft -s list ruleset").splitlines():
        if line.startswith("table "):
            table = line
        elif line.startswith("\tchain "):
            chain = line
        elif line.strip(" \t}") and not table.startswith("table inet gpu_provision"):
            found.add(f"{table}{chain}{line}")
    return found


def prepare(host: LabHost, shape: Shape) -> None:
    if shape.packages:
        quiet = "export DEBIAN_FRONTEND=noninteractive; apt-get install -y -q --no-install-recommends"
        on(host, f"{quiet} {shape.packages} >/dev/null 2>&1")
    on(host, "cat >/root/server", SERVER)
    on(host, "cat >/etc/systemd/system/server.service", UNIT)
    on(host, "systemctl daemon-reload; systemctl enable -q --now server")
    subprocess.run(
        [*ssh.fresh_args(host.target()), "sh -s"], input=shape.setup, text=True, capture_output=True
    )


def reboot(control: Controller) -> None:
    before = control.shell("cat /proc/sys/kernel/random/boot_id")
    subprocess.run([*ssh.fresh_args(control.target), "systemctl reboot"], capture_output=True)

    def back() -> bool:
        try:
            return control.shell("cat /proc/sys/kernel/random/boot_id") != before
        except subprocess.CalledProcessError:
            return False

    wait_for(back, 60, "the host is back after a reboot")
    wait_for(lambda: control.shell("systemctl is-system-running --wait || :") != "", 60, "it has booted")


def cases() -> list[ParameterSet]:
    """Every shape on each release; CI takes a sample of them on one."""
    return [
        pytest.param(
            release,
            shape,
            id=f"{release}-{shape.name}",
            marks=[] if shape.sample and release == "bookworm" else [pytest.mark.full],
        )
        for release in ("bookworm", "trixie")
        for shape in SHAPES
    ]


@pytest.mark.parametrize(("release", "shape"), cases())
def test_shape(
    release: str, shape: Shape, lab_up: Callable[..., LabHost], peer: LabHost, tmp_path: Path
) -> None:
    host = lab_up(release=release)
    v6 = link_local(host)
    prepare(host, shape)
    target = replace(host.target(), port=shape.port)
    if shape.over_v6:
        alias = f"HostKeyAlias={host.address}"
        target = replace(target, address=f"{v6}%{host.place.bridge}", options=(*target.options, alias))
    control = Controller(tmp_path, host, target)
    wait_for(lambda: control.login().holds, 15, "the shape lets its administrator in")
    before, rules = control.shell(STATE), theirs(control)
    variables: dict[str, Any] = {"firewall_allow": ALLOW, "firewall_peers": {"peer": [peer.address]}}
    variables |= {"firewall_confirm_seconds": shape.seconds, **shape.variables}
    status, output = control.role("firewall", **variables)
    assert control.login().holds, "the administrator gets in after everything"
    if shape.says is not None:
        assert status != 0
        assert shape.says in output, output[-3000:]
        assert control.shell(STATE) == before
        return
    assert status == 0, output[-3000:]
    check_access(host, peer, control, v6)
    assert shape.policy_changes or rules - theirs(control) == set(), "rules of others stay"
    for command in shape.then:
        if command == "reboot":
            reboot(control)
        else:
            control.shell(command)
        check_access(host, peer, control, v6)
    status, output = control.role("firewall", **variables)
    assert status == 0, output[-3000:]
    assert "changed=0" in output, output[-3000:]
