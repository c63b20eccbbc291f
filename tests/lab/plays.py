"""Plays against one lab host by plain ansible-playbook, and fresh logins by plain OpenSSH."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from provision.access import fresh
from provision.access.door import door_to
from provision.converge import settings
from provision.converge.hosts import connection
from provision.transport import ssh

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from provision.lab import LabHost
    from provision.transport.target import Target

STATE = "var/lib/gpu-provision/commit-confirm"


class Playbook(subprocess.Popen[str]):
    """ansible-playbook with its output in a file: a pipe that nobody reads would stop a long one half-way."""

    def __init__(self, argv: list[str], folder: Path) -> None:
        self.output = folder / "output.txt"
        with self.output.open("w") as file:
            super().__init__(
                argv,
                cwd=folder,
                env=settings.environment(folder),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                text=True,
                start_new_session=True,
            )

    def communicate(self, input: str | None = None, timeout: float | None = None) -> tuple[str, str]:
        self.wait(timeout)
        return self.output.read_text(), ""


class Play:
    """One running ansible-playbook, in a process group of its own so that all of it can be killed."""

    def __init__(self, process: subprocess.Popen[str], answer: Path) -> None:
        self.process, self.answer = process, answer

    def kill(self) -> None:
        """End the controller, workers and ssh included, as a power cut would.

        Ansible's workers have sessions of their own: left alone, they would make the proof and confirm.
        """
        for pid in [self.process.pid, *descendants(self.process.pid)]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.communicate()

    def result(self) -> dict[str, Any]:
        """What the task registered. AssertionError has Ansible's output where it registered nothing."""
        output, _ = self.process.communicate(timeout=240)
        assert self.answer.exists(), output
        document = json.loads(self.answer.read_text())
        assert isinstance(document, dict)
        return document


class Controller:
    """A machine that plays against one lab host. `wrapper` runs before each fresh login of the plugin."""

    def __init__(self, folder: Path, host: LabHost, target: Target | None = None) -> None:
        self.folder, self.host = folder, host
        self.target = target or host.target()
        self.hold = folder / "hold"
        self.hold_first = folder / "hold-first"
        folder.mkdir(parents=True, exist_ok=True)
        settings.write(folder, forks=1)
        config = folder / "ansible.cfg"
        text = config.read_text().replace("stdout_callback = gpu_provision.host.events\n", "")
        config.write_text(text)

    def start(
        self, task: dict[str, Any], *, extra: dict[str, Any] | None = None, check: bool = False
    ) -> Play:
        """Run one task or, under the key `role`, one role; its result is kept."""
        answer = self.folder / "answer.json"
        answer.unlink(missing_ok=True)
        play: dict[str, Any] = {"hosts": "all", "gather_facts": False, "become": True, "vars": extra or {}}
        if "role" in task:
            play["tasks"] = [{"ansible.builtin.include_role": {"name": f"gpu_provision.host.{task['role']}"}}]
        else:
            play["tasks"] = [
                {**task, "register": "told", "ignore_errors": True},
                {
                    "ansible.builtin.copy": {"content": "{{ told | to_json }}", "dest": str(answer)},
                    "delegate_to": "localhost",
                    "vars": {"ansible_connection": "local", "ansible_python_interpreter": sys.executable},
                    "become": False,
                    "check_mode": False,
                },
            ]
        (self.folder / "play.yml").write_text(yaml.safe_dump([play]))
        variables = connection(
            self.target, python="/usr/bin/python3", options=ssh.options(self.target), login_is_root=False
        )
        variables["ansible_ssh_args"] = "-o ControlMaster=auto -o ControlPersist=20s"
        variables["ansible_control_path_dir"] = "/tmp/gpu-cp"
        variables["ansible_ssh_executable"] = str(self._wrapper())
        inventory = {"all": {"hosts": {self.host.name: variables}}}
        (self.folder / "inventory.yml").write_text(yaml.safe_dump(inventory))
        argv = [str(Path(sys.executable).with_name("ansible-playbook")), "-i", "inventory.yml", "play.yml"]
        process = Playbook(argv + ["--check"] * check + ["-v"] * ("role" in task), self.folder)
        return Play(process, answer)

    def run(self, task: dict[str, Any], **more: Any) -> dict[str, Any]:
        return self.start(task, **more).result()

    def role(self, name: str, *, check: bool = False, **variables: Any) -> tuple[int, str]:
        """Exit status and output of a play with one role."""
        play = self.start({"role": name}, extra=variables, check=check)
        output, _ = play.process.communicate(timeout=240)
        return play.process.returncode, output

    def _wrapper(self) -> Path:
        """An ssh that waits before the first proof while `hold_first` is there, later while `hold` is.

        It leaves `asked` and `asked-again` as it comes to them, and `proved` as it lets the first go.
        """
        path = self.folder / "ssh"
        path.write_text(
            "#!/bin/sh\n"
            f'case "$*" in *"&& id -u"*)\n'
            f"    if [ -e {self.folder}/proved ]; then asked=asked-again hold={self.hold}\n"
            f"    else asked=asked hold={self.hold_first}; fi\n"
            f"    touch {self.folder}/$asked\n"
            "    while [ -e $hold ]; do sleep 0.05; done\n"
            f"    touch {self.folder}/proved ;;\n"
            "esac\n"
            'exec ssh "$@"\n'
        )
        path.chmod(0o755)
        for mark in ("asked", "asked-again", "proved"):
            (self.folder / mark).unlink(missing_ok=True)
        return path

    @contextmanager
    def holding(self) -> Iterator[None]:
        """The login after the change waits until this ends."""
        self.hold.touch()
        try:
            yield
        finally:
            self.hold.unlink(missing_ok=True)

    def login(self) -> fresh.Proof:
        return fresh.login(door_to(self.target))

    def stages(self) -> list[str]:
        """Names of what the host's state directory holds, seen from outside: `armed`, `done`, …"""
        state = self.host.root / STATE
        return sorted(p.name.split(".")[0] for p in state.glob("*.*") if p.is_dir())

    def begun(self) -> bool:
        """Whether what is armed has begun to take effect."""
        return bool(list((self.host.root / STATE).glob("armed.*/begun")))

    def shell(self, command: str) -> str:
        """Run a command on the host as root; its output. Raises CalledProcessError."""
        argv = [*ssh.fresh_args(self.target), command]
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True)
        return done.stdout


def descendants(pid: int) -> list[int]:
    """The processes that one started, and those that they did."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            for child in task.read_text().split():
                found += [int(child), *descendants(int(child))]
    return found


def wait_for(what: Callable[[], bool], seconds: float, why: str) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, f"not within {seconds:.0f} s: {why}"
        time.sleep(0.05)


def changes(host: LabHost) -> dict[str, tuple[int, int]]:
    """Size and time of every file that the host has changed over its base, logs and sessions left out."""
    left_out = ("var/log/", "run/", "tmp/", "root/.ansible", "var/lib/systemd/", "var/tmp/", "etc/.updated")
    found = {}
    for path in host.layer.rglob("*"):
        name = str(path.relative_to(host.layer))
        if not path.is_symlink() and path.is_file() and not name.startswith(left_out):
            found[name] = (path.stat().st_size, path.stat().st_mtime_ns)
    return found
