"""Containers, run on the host from an image that is made there on the spot: no registry is asked."""

from __future__ import annotations

import re
import shlex
import uuid
from typing import TYPE_CHECKING

import pytest

from provision.facts.known import Absent, Unknown
from provision.planners import container_toolkit, docker_settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from testinfra.host import Host

    from provision.facts import Facts
    from provision.verify.subject import Subject

SECONDS = 90
LAST_LINES = 3
RUNTIME = docker_settings.RUNTIME
# A shell, three programs and the libraries that they load, in the layout that distributions have today.
IMAGE = r"""
set -eu
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$scratch/usr/bin" "$scratch/usr/lib" "$scratch/usr/lib64" "$scratch/tmp"
for link in bin lib lib64; do ln -s "usr/$link" "$scratch/$link"; done
for program in sh cat df; do
    path=$(readlink -f "$(command -v "$program")")
    cp "$path" "$scratch/usr/bin/$program"
    ldd "$path" | grep -o '/[^ ]*' | while read -r library; do
        mkdir -p "$scratch$(dirname "$library")" && cp -L "$library" "$scratch$library"
    done
done
tar -C "$scratch" -c . | $2 import - "$1"
"""


@pytest.fixture(scope="module")
def docker(host: Host, facts: Facts) -> str:
    """How this login calls docker. Hosts without a running docker are skipped."""
    if isinstance(facts.docker, Unknown | Absent):
        pytest.skip("docker does not run here")
    said = []
    for command in ("docker", "sudo -n docker"):
        done = host.run(f"{command} version")
        if done.rc == 0:
            return command
        said.append(done.stderr or done.stdout)
    if "permission denied" in said[0]:
        pytest.skip("this login may not use docker, and sudo asks for a password")
    pytest.fail(f"docker version: {_last(said[0])}")


@pytest.fixture(scope="module")
def image(host: Host, docker: str) -> Iterator[str]:
    """The name of an image that is gone again afterwards."""
    name = f"gpu-provision-verify:{uuid.uuid4().hex[:12]}"
    made = host.run(f"sh -c {shlex.quote(IMAGE)} make-image {name} {shlex.quote(docker)}")
    assert made.rc == 0, f"no image could be made: {_last(made.stdout + made.stderr)}"
    yield name
    host.run(f"{docker} rmi -f {name}")


def _last(text: str) -> str:
    return "\n".join(text.strip().splitlines()[-LAST_LINES:])


class Container:
    """Runs commands in new containers of the image."""

    def __init__(self, host: Host, docker: str, image: str) -> None:
        self.host, self.docker, self.image = host, docker, image

    def __call__(self, command: str, options: str = "") -> str:
        """What a command printed; docker's own words as the failure where it did not end well."""
        line = f"{self.docker} run --rm --network none {options} {self.image} {command}"
        done = self.host.run(f"LC_ALL=C timeout -k 5 {SECONDS} {line}")
        assert done.rc != 124, f"the container did not end within {SECONDS} s"
        assert done.rc == 0, _last(done.stderr or done.stdout)
        return str(done.stdout)


@pytest.fixture(scope="module")
def ran(host: Host, docker: str, image: str) -> Container:
    return Container(host, docker, image)


@pytest.fixture
def cards(facts: Facts) -> int:
    """How many GPUs a container has to see; skipped where the host gives none to containers."""
    found, docker = facts.nvidia_gpus_on_bus, facts.docker
    if isinstance(found, Unknown) or not found:
        pytest.skip("no NVIDIA GPU on the bus")
    if isinstance(facts.smi, Unknown):
        pytest.skip("the driver does not answer on the host itself")
    if not isinstance(docker, Unknown | Absent) and RUNTIME not in docker.runtimes:
        pytest.skip(f"docker has no runtime {RUNTIME}")
    return len(found)


def listed(text: str) -> int:
    return len(re.findall(r"^GPU \d+: .+$", text, re.MULTILINE))


def test_a_container_runs(ran: Container) -> None:
    """Docker runs a container."""
    assert ran("sh -c 'echo $((6 * 7))'").strip() == "42"


def test_a_container_sees_every_card_by_the_runtime(ran: Container, cards: int) -> None:
    """A container with NVIDIA's runtime sees every GPU."""
    seen = listed(ran("nvidia-smi -L", f"--runtime={RUNTIME} -e NVIDIA_VISIBLE_DEVICES=all"))
    assert seen == cards, f"{cards} on the bus, {seen} in the container"


def test_a_container_sees_every_card_by_gpus_all(ran: Container, cards: int) -> None:
    """A container with `--gpus all` sees every GPU."""
    seen = listed(ran("nvidia-smi -L", "--gpus all"))
    assert seen == cards, f"{cards} on the bus, {seen} in the container"


def test_a_container_has_the_limits_of_the_profile(ran: Container, subject: Subject, facts: Facts) -> None:
    """A container that names no limits has those of the profile."""
    if not container_toolkit.asked(subject.profile):
        pytest.skip("the profile says nothing about containers")
    settings = docker_settings.settings(facts, subject.profile)
    assert settings.refused is None, settings.refused
    limits, rows = settings.values.get("default-ulimits", {}), {}
    for line in ran("cat /proc/self/limits").splitlines():
        if row := re.fullmatch(r"Max (stack size|locked memory) +(\S+) +(\S+) .*", line):
            rows[{"stack size": "stack", "locked memory": "memlock"}[row[1]]] = row[2], row[3]
    for name, limit in limits.items():
        wanted = "unlimited" if limit["Hard"] == -1 else str(limit["Hard"])
        assert rows[name] == (wanted, wanted), f"{name}: {' and '.join(rows[name])}, {wanted} is wanted"
    if "default-shm-size" in settings.values:
        size = docker_settings.size_in_bytes(settings.values["default-shm-size"])
        last = ran("df -B1 /dev/shm").splitlines()[-1].split()
        assert int(last[1]) == size, f"/dev/shm has {last[1]} bytes, {size} are wanted"
