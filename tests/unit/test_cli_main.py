"""The front door: every failure is one message and the contract's exit code, and nothing slow is imported."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from provision.cli.main import COMMANDS, cli

if TYPE_CHECKING:
    from pathlib import Path


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "provision", *arguments], capture_output=True, text=True)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_and_the_line_of_the_overview(command: str) -> None:
    import click

    found = cli.get_command(click.Context(cli), command)
    assert found is not None
    assert found.get_short_help_str(200)


def test_help_imports_nothing_slow() -> None:
    code = (
        "import sys; from provision.cli.main import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "slow = {'ansible', 'rich', 'paramiko', 'fabric', 'testinfra', 'pytest', 'yaml'} & set(sys.modules)\n"
        "sys.exit(', '.join(slow) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["nonsense"], 2, "nonsense"),
        (["audit"], 2, "give HOST, or --recording FILE"),
        (["audit", "--recording", "/no/such/file"], 2, "/no/such/file"),
        (["audit", "--recording", "/etc/hostname"], 2, "no recording"),
        (["audit", "h", "--profile", "nope"], 2, "nope"),
        (["audit", "h", "--set", "nccl_interfce=eno1"], 2, "did you mean nccl_interface?"),
        (["plan", "h", "--forks", "0"], 2, "--forks"),
        (["bootstrap"], 2, "HOST"),
        (["bootstrap", "h", "--reboot", "now"], 2, "--reboot"),
        (["bootstrap", "h", "--plan", "/no/such/plan"], 2, "/no/such/plan"),
        (["bootstrap", "h", "--plan", "/etc/os-release"], 2, "is no saved plan"),
        (["apply", "h", "--only", "nvidia"], 2, "the roles are nvidia_driver"),
        (["apply", "h", "--all-roles", "--plan", "p"], 2, "--plan runs what was saved"),
        (["verify", "127.0.0.1:1", "--disruptive"], 2, "--yes"),
        (["audit", "127.0.0.1:1"], 3, "127.0.0.1:1"),
        (["plan", "no-such-host.invalid"], 3, "no-such-host.invalid"),
    ],
)
def test_bad_input_is_one_message_and_a_code(arguments: list[str], code: int, says: str) -> None:
    done = run(*arguments)
    assert done.returncode == code, done.stderr
    assert says in done.stderr + done.stdout
    assert "Traceback" not in done.stderr


def test_a_request_to_end_is_a_ctrl_c(tmp_path: Path) -> None:
    """A FIFO holds the command in the middle of its work; ended there, it leaves as an interrupt does."""
    fifo = tmp_path / "recording"
    os.mkfifo(fifo)
    command = [sys.executable, "-m", "provision", "audit", "--recording", str(fifo)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as running:
        writer = os.open(fifo, os.O_WRONLY)  # returns once the command reads
        running.send_signal(signal.SIGTERM)
        _, said = running.communicate(timeout=30)
        os.close(writer)
    assert running.returncode == 130
    assert "interrupted" in said
