"""Role firewall over time: a download under way, rules flushed by hand, services that are stopped, docker."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from plays import Controller, wait_for

from provision.transport import ssh

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from provision.lab import LabHost

PATIENCE: dict[str, Any] = {"firewall_confirm_seconds": 60}
# Says a letter five times a second, as a download that takes a while; the other side only listens.
SLOW = (
    "import socket, time\ns = socket.create_server(('', 7500))\nc = s.accept()[0]\n"
    "while True:\n    c.send(b'x')\n    time.sleep(0.2)\n"
)
LISTEN = (
    "import socket, sys\ns = socket.create_connection((sys.argv[1], 7500), 5)\ns.settimeout(4)\n"
    "while True:\n    assert s.recv(10)\n    open('/root/got', 'ab').write(b'x')\n"
)
SERVICE = "[Service]\nExecStart=/usr/bin/python3 -m http.server 8765\n[Install]\nWantedBy=multi-user.target\n"
DOCKER = """\
set -e
export DEBIAN_FRONTEND=noninteractive
cli=; [ "$(. /etc/os-release; echo $VERSION_CODENAME)" = bookworm ] || cli=docker-cli
apt-get install -y -q --no-install-recommends docker.io $cli iptables busybox-static
mkdir -p /root/image/bin
cp /bin/busybox /root/image/bin/
tar -C /root/image -c . | docker import - box
for port in 8080 8081; do
    docker run -d --restart always --name "web$port" -p "$port:80" box \
        /bin/busybox httpd -f -p 80
done
"""


def on(host: LabHost, command: str, text: str = "") -> str:
    argv = [*ssh.fresh_args(host.target()), command]
    done = subprocess.run(argv, input=text, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def reaches(host: LabHost, port: int, viewer: LabHost | None = None) -> bool:
    """Whether a connection is opened from another lab host, or from this machine."""
    code = f"import socket; socket.create_connection(('{host.address}', {port}), 3)"
    argv = ["python3", "-c", code]
    if viewer is not None:
        argv = [*ssh.fresh_args(viewer.target()), f'python3 -c "{code}"']
    return subprocess.run(argv, capture_output=True).returncode == 0


def converge(control: Controller, **variables: Any) -> str:
    """Run the role; its recap line."""
    status, output = control.role("firewall", **PATIENCE, **variables)
    assert status == 0, output[-3000:]
    return next(line for line in output.splitlines() if "changed=" in line)


@pytest.fixture(scope="module")
def peer(lab_up: Callable[..., LabHost]) -> LabHost:
    return lab_up()


@pytest.mark.full
def test_life_on_a_host(lab_up: Callable[..., LabHost], peer: LabHost, tmp_path: Path) -> None:
    host = lab_up()
    control = Controller(tmp_path, host)
    on(
        host,
        "cat >/etc/systemd/system/web.service; systemctl daemon-reload; systemctl enable -q --now web",
        SERVICE,
    )
    on(peer, "cat >/root/slow; systemd-run -q --unit=slow python3 /root/slow", SLOW)
    wait_for(lambda: on(peer, "grep -c :1D4C /proc/net/tcp || :").strip() != "0", 10, "the peer serves")
    on(host, f"cat >/root/listen; systemd-run -q --unit=listen python3 /root/listen {peer.address}", LISTEN)
    wait_for(
        lambda: on(host, "stat -c %s /root/got 2>/dev/null || echo 0").strip() != "0", 10, "a download runs"
    )
    assert reaches(host, 8765, peer)
    converge(control)
    assert not reaches(host, 8765, peer), "nobody asked for it"
    got = int(on(host, "stat -c %s /root/got"))
    wait_for(lambda: int(on(host, "stat -c %s /root/got")) > got, 5, "the download goes on")
    assert on(host, "systemctl is-active listen").strip() == "active"

    # Somebody empties the kernel's rules: the files are right, and what is loaded is not.
    on(host, "nft flush ruleset")
    assert reaches(host, 8765, peer)
    assert "changed=0" not in converge(control)
    assert not reaches(host, 8765, peer)
    assert "changed=0" in converge(control)

    # A service is stopped by name, and does not come back with the next boot; off the list it stays stopped.
    assert "changed=0" not in converge(control, firewall_stop=["web"])
    assert on(host, "systemctl is-active web || :; systemctl is-enabled web || :").split() == [
        "inactive",
        "disabled",
    ]
    assert "changed=0" in converge(control, firewall_stop=["web"])
    assert "changed=0" in converge(control)
    assert on(host, "systemctl is-active web || :").strip() == "inactive"


@pytest.mark.full
@pytest.mark.parametrize("release", ["bookworm", "trixie"])
def test_ports_that_docker_publishes(
    release: str, lab_up: Callable[..., LabHost], peer: LabHost, tmp_path: Path
) -> None:
    host = lab_up(release=release)
    control = Controller(tmp_path, host)
    on(host, "sh -s", DOCKER)
    on(host, "iptables -I DOCKER-USER -s 192.0.2.66 -j DROP")
    wait_for(lambda: reaches(host, 8080, peer), 20, "docker publishes")
    converge(control)
    assert reaches(host, 8080, peer), "it passes the input chain, and is only reported"
    close: dict[str, Any] = {
        "firewall_docker_published": "close",
        "firewall_allow": [{"port": 8081, "proto": "tcp", "from": [peer.address]}],
    }
    converge(control, **close)
    assert "changed=0" in converge(control, **close)

    def closed() -> None:
        assert not reaches(host, 8080, peer), "nobody asked for it"
        assert not reaches(host, 8080)
        assert reaches(host, 8081, peer)
        assert not reaches(host, 8081), "it is the peer's"
        assert "192.0.2.66" in on(host, "iptables -S DOCKER-USER"), "rules of others stay"

    closed()
    on(host, "systemctl restart docker")
    wait_for(lambda: reaches(host, 8081, peer), 30, "docker publishes again")
    closed()
    on(host, "iptables -D DOCKER-USER -s 192.0.2.66 -j DROP")
    subprocess.run([*ssh.fresh_args(host.target()), "systemctl reboot"], capture_output=True)
    wait_for(lambda: not control.login().holds, 30, "it goes down")
    wait_for(lambda: control.login().holds, 60, "a key gets in after the boot")
    wait_for(lambda: reaches(host, 8081, peer), 60, "docker publishes again")
    assert not reaches(host, 8080, peer)
    converge(control, **{**close, "firewall_docker_published": "leave"})
    assert reaches(host, 8080, peer), "given back to docker"
    assert "GPU-PROVISION" not in on(host, "iptables -S")
