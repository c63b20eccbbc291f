"""A group of a real inventory behind the firewall: its hosts reach each other, a third host and this machine
do not; and `verify` sees which ports are open from outside, over both families."""

from __future__ import annotations

import ipaddress
import json
import os
import secrets
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from plays import wait_for

from provision.transport import ssh

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from provision.lab import LabHost

PEERS_PORT, CLUSTER_PORT, NOBODYS_PORT, UNSERVED = 8001, 40001, 9999, 8000
VARIABLES = {
    "firewall_allow": [
        {"port": UNSERVED, "proto": "tcp", "why": "notebooks"},
        {"port": PEERS_PORT, "proto": "tcp", "from": ["nodes"], "why": "exporters"},
        {"port": "7000-7010", "proto": "udp"},
    ],
    "firewall_cluster_peers": ["nodes"],
}
SERVER = (
    "import selectors, socket\nready = selectors.DefaultSelector()\n"
    f"for port in {PEERS_PORT, CLUSTER_PORT, NOBODYS_PORT}:\n"
    "    s = socket.create_server(('', port), family=socket.AF_INET6, dualstack_ipv6=True)\n"
    "    ready.register(s, selectors.EVENT_READ)\n"
    "while True:\n    for key, _ in ready.select():\n        key.fileobj.accept()[0].close()\n"
)
# A rule of somebody else's that shuts what the profile opens.
SHUT = (
    f"nft 'add table inet other; add chain inet other in {{ type filter hook input priority 0; }}; "
    f"add rule inet other in tcp dport {UNSERVED} drop'"
)


@pytest.fixture(scope="module")
def nodes(lab_up: Callable[..., LabHost]) -> tuple[LabHost, ...]:
    """Two hosts of the group that are alike, and a third that is no part of it. None has a GPU."""
    found = tuple(lab_up(gpus="none") for _ in range(3))
    for host in found:
        on(host, "cat >/root/server; systemd-run -q --unit=server python3 /root/server", SERVER)
    for host in found:
        wait_for(lambda host=host: reaches(None, host, NOBODYS_PORT), 15, "the services listen")  # type: ignore[misc]
    return found


@pytest.fixture(scope="module")
def over_ipv6(nodes: tuple[LabHost, ...]) -> Iterator[str]:
    """An address of the first host that this machine reaches: lab hosts have link-local ones alone."""
    host = nodes[0]
    network = f"fd{secrets.token_hex(1)}:{secrets.token_hex(2)}:{secrets.token_hex(2)}:"
    on(host, f"ip -6 addr add {network}:7/64 dev host0 nodad")
    ours = [f"{network}:1/64", "dev", host.place.bridge]
    subprocess.run(["ip", "-6", "addr", "add", *ours, "nodad"], check=True)
    yield str(ipaddress.ip_address(f"{network}:7"))
    subprocess.run(["ip", "-6", "addr", "del", *ours], check=True)


def on(host: LabHost, command: str, text: str = "") -> str:
    argv = [*ssh.fresh_args(host.target()), command]
    done = subprocess.run(argv, input=text, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def reaches(viewer: LabHost | None, host: LabHost, port: int) -> bool:
    """Whether a connection is made from another lab host, or from this machine."""
    code = f"import socket; socket.create_connection(('{host.address}', {port}), 3)"
    argv = ["python3", "-c", code]
    if viewer is not None:
        argv = [*ssh.fresh_args(viewer.target()), f'python3 -c "{code}"']
    return subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True).returncode == 0


def inventory(folder: Path, members: tuple[LabHost, ...]) -> Path:
    hosts = {}
    for host in members:
        target = host.target()
        hosts[host.name] = {
            "ansible_host": target.address,
            "ansible_user": target.user,
            "ansible_ssh_private_key_file": target.identity,
            "ansible_ssh_common_args": " ".join(f"-o {option}" for option in target.options),
        }
    path = folder / "hosts.yml"
    path.write_text(yaml.safe_dump({"nodes": {"hosts": hosts, "vars": VARIABLES}}))
    return path


def command(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    return subprocess.run(
        [Path(sys.executable).with_name("gpu-provision"), *words],
        env={**kept, "HOME": str(folder)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.mark.full
def test_a_group_is_open_to_its_own(nodes: tuple[LabHost, ...], over_ipv6: str, tmp_path: Path) -> None:
    one, other, stranger = nodes
    listed = inventory(tmp_path, (one, other))
    done = command(
        tmp_path, "apply", "nodes", "-i", str(listed), "--only", "firewall", "--yes", "--format", "json"
    )
    assert done.returncode == 0, done.stderr[-3000:]
    report: dict[str, Any] = json.loads(done.stdout)
    for host in report["hosts"]:
        assert "firewall" in host["planned"]
    [proven] = [host["checks"] for host in report["hosts"] if host["host"] == one.name]
    status = {c["check"]: (c["status"], c["message"]) for c in proven if c["check"].startswith("firewall.")}
    assert len(status) == 4
    assert set(status.values()) == {("passed", "")}, status

    for port in (PEERS_PORT, CLUSTER_PORT):
        assert reaches(other, one, port)
        assert reaches(one, other, port)
        assert not reaches(stranger, one, port), "it is of no group"
        assert not reaches(None, one, port), "neither is the machine that the run came from"
        assert reaches(one, stranger, port), "nothing keeps the group's own connections in"
    assert not reaches(other, one, NOBODYS_PORT)

    # Emptied rules, and a rule of somebody else's: both show from outside.
    on(one, f"nft flush ruleset; {SHUT}")
    seen = command(tmp_path, "verify", one.name, "-i", str(listed))
    assert seen.returncode == 1, seen.stdout + seen.stderr
    said = " ".join(seen.stdout.split())
    assert f"not reached at {one.address}: {UNSERVED}/tcp" in said
    assert f"not reached at {over_ipv6}: {UNSERVED}/tcp" in said
    assert said.count("nobody opened it to") == 2
    assert f"{PEERS_PORT}/tcp" in said.partition("nobody opened it to")[2]
