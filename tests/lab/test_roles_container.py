"""The role container_toolkit by plain ansible-playbook: real docker, the archive's packages, the GPU double."""

# ruff: noqa: E501

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from plays import Controller

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from archive.served import Archive

    from provision.lab import LabHost

QUIET = "DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends"
# Debian 13 has docker's client in a package of its own.
DOCKER = f"{QUIET} docker.io $(apt-cache show docker-cli >/dev/null 2>&1 && echo docker-cli) >/dev/null 2>&1"
DAEMON = "etc/docker/daemon.json"
OTHERS = {"log-opts": {"max-size": "10m"}, "runtimes": {"mine": {"path": "runc"}}, "shutdown-timeout": 20}
LEFT_OUT = ("var/log/", "run/", "tmp/", "root/.ansible", "var/lib/systemd/", "var/tmp/", "var/lib/docker/", "var/lib/containerd/", "etc/.updated")  # fmt: skip


def variables(archive: Archive, **more: Any) -> dict[str, Any]:
    return {
        "container_toolkit_repository": f"{archive.container_toolkit}/$(ARCH)",
        "container_toolkit_repository_key": archive.key_url,
        "container_toolkit_default_shm_size": "2G",
        **more,
    }


def play(controller: Controller, *, check: bool = False, **given: Any) -> tuple[int, str, int]:
    """Exit status, output and the number of changes of the role."""
    running = controller.start({"role": "container_toolkit"}, extra=given, check=check)
    output, _ = running.process.communicate(timeout=600)
    changed = re.search(r"changed=(\d+)", output)
    return running.process.returncode, output, int(changed[1]) if changed else -1


def changes(host: LabHost) -> dict[str, tuple[int, int]]:
    found = {}
    for path in host.layer.rglob("*"):
        name = str(path.relative_to(host.layer))
        if not path.is_symlink() and path.is_file() and not name.startswith(LEFT_OUT):
            found[name] = (path.stat().st_size, path.stat().st_mtime_ns)
    return found


def with_a_driver(host: LabHost, archive: Archive, controller: Controller) -> None:
    """A driver of the archive's, whose module DKMS builds in a moment; the double loads it."""
    release = {"bookworm": "debian12", "trixie": "debian13"}[host.release]
    archive.give(host.root, f"{archive.cuda}/{release}/x86_64/ /")
    controller.shell(
        f"apt-get update -qq && {QUIET} nvidia-driver-pinning-580 >/dev/null 2>&1 && {QUIET} nvidia-open >/dev/null 2>&1 && modprobe nvidia"
    )


@pytest.fixture(scope="module")
def machine(
    lab_up: Callable[..., LabHost], archive: Archive, tmp_path_factory: pytest.TempPathFactory
) -> Controller:
    """A host with a driver, and docker that somebody else set up."""
    controller = Controller(tmp_path_factory.mktemp("control"), lab_up())
    with_a_driver(controller.host, archive, controller)
    (controller.host.root / "etc/docker").mkdir()
    (controller.host.root / DAEMON).write_text(json.dumps(OTHERS))
    controller.shell(DOCKER)
    return controller


def test_docker_is_adopted_and_containers_see_the_gpus(
    machine: Controller, archive: Archive, tmp_path: Path
) -> None:
    given = variables(archive)
    before = changes(machine.host)
    status, output, _ = play(machine, check=True, **given)
    assert status == 0, output
    assert changes(machine.host) == before
    status, output, _ = play(machine, **given)
    assert status == 0, output
    settings = json.loads((machine.host.root / DAEMON).read_text())
    assert list(settings) == [*OTHERS, "default-shm-size", "default-ulimits"]
    assert settings["runtimes"] == {
        "mine": {"path": "runc"},
        "nvidia": {"path": "nvidia-container-runtime", "runtimeArgs": []},
    }
    versions = machine.shell(
        "dpkg-query -W -f='${Version}\\n' 'nvidia-container-toolkit*' 'libnvidia-container*'"
    ).split()
    assert versions == ["1.20.1-1"] * 4
    assert len(machine.shell("apt-mark showhold").split()) == 4
    after = changes(machine.host)
    status, output, changed = play(machine, **given)
    assert (status, changed) == (0, 0), output
    assert changes(machine.host) == after
    # From outside: a container runs, sees the GPUs both ways, and has the limits.
    told = [word for name, value in given.items() for word in ("--set", f"{name}={value}")]
    argv = [sys.executable, "-m", "provision", "verify", machine.host.name, *told]
    said = subprocess.run(argv, capture_output=True, text=True, check=False, env=state_in(tmp_path))
    shown = said.stdout + said.stderr
    for check in (
        "runs a container",
        "runtime sees every GPU",
        "--gpus all` sees every GPU",
        "those of the profile",
    ):
        assert re.search(rf"proven\s.*{re.escape(check)}", shown), shown


def state_in(folder: Path) -> dict[str, str]:
    import os

    return {**os.environ, "XDG_STATE_HOME": str(folder)}


def settings(**more: Any) -> dict[str, Any]:
    return {
        "gpu_provision.host.docker_settings": {"settings": {"default-shm-size": "1G"}, "patience": 30, **more}
    }


def put(machine: Controller, raw: bytes) -> None:
    machine.shell(f"chattr -i /{DAEMON} 2>/dev/null || true; rm -rf /{DAEMON}")
    (machine.host.root / DAEMON).write_bytes(raw)


MERGED = {
    "settings": json.dumps(OTHERS).encode(),
    "a byte order mark": b"\xef\xbb\xbf{}",
    "empty": b"",
    "blanks": b" \r\n",
    "CRLF": b'{\r\n  "icc": true\r\n}\r\n',
    "other letters": '{"labels": ["ort=Köln"]}'.encode(),
    "huge": json.dumps({"labels": [f"label-{i}=x" for i in range(20000)]}).encode(),
}
REFUSED = {
    "a comma at the end": (b'{\n  "icc": true,\n}', "line 3, column 1"),
    "a comment": (b'{\n// x\n"icc": true}', "line 2, column 1"),
    "a stray brace": (b'{"icc": true} }', "line 1, column 15"),
    "a name twice": (b'{"icc": true,\n "icc": true}', "line 2, column 2"),
    "not UTF-8": (b'{"labels": ["\xff=1"]}', "line 1, column 14"),
    "a list": (b"[]", "line 1, column 1"),
    "single quotes": (b"{'icc': true}", "line 1, column 2"),
    "UTF-16": ("{}".encode("utf-16"), "UTF-16"),
}
IN_CI = ("a byte order mark", "a name twice")


def chosen(names: Any) -> list[Any]:
    return [name if name in IN_CI else pytest.param(name, marks=pytest.mark.full) for name in names]


@pytest.mark.parametrize("name", chosen(MERGED))
def test_a_file_is_merged_and_docker_comes_back(machine: Controller, name: str) -> None:
    put(machine, MERGED[name])
    told = machine.run(settings())
    assert told["restarted"], told
    written = json.loads((machine.host.root / DAEMON).read_text())
    there = json.loads(MERGED[name].decode("utf-8-sig").strip() or "{}")
    assert written == {**there, "default-shm-size": "1G"}
    assert (machine.host.root / told["backup"].lstrip("/")).read_bytes() == MERGED[name]
    assert machine.shell("docker info --format '{{.ServerVersion}}'").strip()
    again = machine.run(settings())
    assert not again["changed"]


@pytest.mark.parametrize("name", chosen(REFUSED))
def test_a_file_is_refused_with_its_place_and_left(machine: Controller, name: str) -> None:
    raw, place = REFUSED[name]
    put(machine, raw)
    daemon = machine.shell("systemctl show docker -p MainPID")
    told = machine.run(settings())
    assert told["failed"]
    assert place in told["msg"]
    assert (machine.host.root / DAEMON).read_bytes() == raw
    assert machine.shell("systemctl show docker -p MainPID") == daemon


AWKWARD = {
    "immutable": (f"echo '{{}}' > /{DAEMON} && chattr +i /{DAEMON}", f"chattr -i /{DAEMON}", "cannot be replaced, and is as it was"),
    "a read-only mount": (f"mkdir -p /srv/ro && echo '{{}}' > /{DAEMON} && mount --bind /etc/docker /etc/docker && mount -o remount,bind,ro /etc/docker", "umount /etc/docker", "cannot be replaced, and is as it was"),
    "a directory": (f"mkdir /{DAEMON}", f"rmdir /{DAEMON}", "is a directory"),
    "a loop of links": (f"ln -s daemon.json /{DAEMON}", f"rm /{DAEMON}", "cannot be looked at"),
}  # fmt: skip


@pytest.mark.full
@pytest.mark.parametrize("name", AWKWARD)
def test_a_file_that_cannot_be_replaced_is_left(machine: Controller, name: str) -> None:
    make, back, says = AWKWARD[name]
    put(machine, b"{}")
    machine.shell(f"rm -f /{DAEMON}; {make}")
    try:
        told = machine.run(settings())
        assert told["failed"], told
        assert says in told["msg"]
        assert machine.shell("systemctl is-active docker").strip() == "active"
        assert machine.shell("ls /etc/docker /var/lib/gpu-provision/docker").count("unapplied") == 0
    finally:
        machine.shell(back)


@pytest.mark.full
def test_a_symbolic_link_stays_one_and_mode_and_owner_stay(machine: Controller) -> None:
    put(machine, b"{}")
    machine.shell(
        f"mkdir -p /srv/conf && rm /{DAEMON} && echo '{{}}' > /srv/conf/d.json && chmod 600 /srv/conf/d.json && chown games /srv/conf/d.json && ln -s /srv/conf/d.json /{DAEMON}"
    )
    told = machine.run(settings())
    assert told["restarted"], told
    assert machine.shell(f"readlink /{DAEMON}; stat -c '%a %U' /srv/conf/d.json").split() == [
        "/srv/conf/d.json",
        "600",
        "games",
    ]
    assert "1G" in machine.shell("cat /srv/conf/d.json")


def test_where_docker_does_not_come_back_the_old_file_does(machine: Controller) -> None:
    put(machine, b'{"icc": true}\n')
    told = machine.run(settings(settings={"storage-driver": "no-such-driver"}))
    assert told["failed"]
    assert "The old file was put back; docker runs with it again" in told["msg"]
    assert (machine.host.root / DAEMON).read_bytes() == b'{"icc": true}\n'
    assert machine.shell("docker info --format '{{.ServerVersion}}'").strip()
    assert not (machine.host.root / "var/lib/gpu-provision/docker/unapplied").exists()


@pytest.mark.full
def test_containers_are_not_ended_unless_that_is_allowed(machine: Controller) -> None:
    put(machine, b"{}")
    image = "mkdir -p /srv/i/usr/bin /srv/i/usr/lib64 && ln -sfn usr/bin /srv/i/bin && cp /bin/sleep /srv/i/usr/bin && for f in $(ldd /bin/sleep | grep -o '/[^ ]*'); do mkdir -p /srv/i$(dirname $f) && cp -L $f /srv/i$f; done && tar -C /srv/i -c . | docker import - sleeper >/dev/null"
    machine.shell(
        f"systemctl restart docker && {image} && docker run -d --rm --network none --name sleeper sleeper sleep 600"
    )
    told = machine.run(settings())
    assert "1 containers run" in told["msg"]
    assert (machine.host.root / DAEMON).read_bytes() == b"{}"
    assert machine.run(settings(interrupt=True))["restarted"]


@pytest.mark.full
@pytest.mark.parametrize("release", ["bookworm", "trixie"])
def test_docker_is_installed_and_nvidia_docker2_migrated(
    lab_up: Callable[..., LabHost], archive: Archive, tmp_path: Path, release: str
) -> None:
    host = lab_up(release=release)
    controller = Controller(tmp_path, host)
    archive.give(host.root, f"{archive.container_toolkit}/amd64 /", "nvidia-docker")
    controller.shell(
        f"apt-get update -qq && {QUIET} nvidia-docker2 >/dev/null 2>&1 && rm /etc/apt/sources.list.d/nvidia-docker.list"
    )
    status, output, changed = play(controller, **variables(archive))
    assert (status != 0, changed) == (True, 0)
    assert "container_toolkit_install_docker: true" in output
    given = variables(archive, container_toolkit_install_docker=True)
    status, output, _ = play(controller, **given)
    assert status == 0, output
    assert "nvidia" in controller.shell("docker info --format '{{json .Runtimes}}'")
    assert controller.shell("dpkg-query -W -f='${db:Status-Abbrev}' nvidia-docker2").strip() == "rc"
    status, output, changed = play(controller, **given)
    assert (status, changed) == (0, 0), output
    # Another release by name: all four move, and are held again.
    status, output, _ = play(controller, **{**given, "container_toolkit_version": "1.17"})
    assert status == 0, output
    assert (
        controller.shell(
            "dpkg-query -W -f='${Version}\\n' 'nvidia-container-toolkit*' 'libnvidia-container*'"
        ).split()
        == ["1.17.8-1"] * 4
    )
    assert len(controller.shell("apt-mark showhold").split()) == 4
