"""What a user would pick instead, asking QUESTIONS: testinfra over SSH, and Ansible with pipelining."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from questions import QUESTIONS

if TYPE_CHECKING:
    from collections.abc import Sequence

_SUITE = """\
import pytest

@pytest.mark.parametrize("command", {commands!r})
def test_asks(host, command):
    assert host.run(command).rc is not None
"""
_CONFIG = """\
[defaults]
host_key_checking = true
forks = {forks}
retry_files_enabled = false

[ssh_connection]
pipelining = true
"""


def testinfra(folder: Path, addresses: Sequence[str]) -> list[str]:
    """A suite with one test a question."""
    suite = folder / "test_questions.py"
    suite.write_text(_SUITE.format(commands=[command for _, command in QUESTIONS]), encoding="utf-8")
    hosts = ",".join(f"ssh://{address}" for address in addresses)
    return [
        *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"),
        *("--rootdir", str(folder), "--hosts", hosts, str(suite)),
    ]


def ansible(folder: Path, addresses: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """A playbook with one task a question, and the environment that points at a configuration of its own."""
    tasks = [
        {
            "name": item,
            "ansible.builtin.command": command,
            "register": "said",
            "changed_when": False,
            "failed_when": "said.rc is not defined and said.msg is not defined",
        }
        for item, command in QUESTIONS
    ]
    playbook, config = folder / "questions.yml", folder / "ansible.cfg"
    # JSON is YAML.
    playbook.write_text(
        json.dumps([{"hosts": "all", "gather_facts": False, "tasks": tasks}]), encoding="utf-8"
    )
    config.write_text(_CONFIG.format(forks=max(5, len(addresses))), encoding="utf-8")
    program = Path(sys.executable).with_name("ansible-playbook")
    argv = [str(program), "-i", "".join(f"{address}," for address in addresses), str(playbook)]
    return argv, {"ANSIBLE_CONFIG": str(config), "ANSIBLE_HOME": str(folder / "ansible-home")}
