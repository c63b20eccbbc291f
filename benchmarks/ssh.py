"""Key-only SSH that is there already: our second run beside that of devsec.hardening's ssh_hardening.

    ansible-galaxy collection install devsec.hardening -p ~/rivals
    python benchmarks/ssh.py --collections ~/rivals [--rounds 3] [--release trixie] [--write FILE]

Each has a lab host of its own (as root) that it has hardened before. Measured in rounds, each once a round:
(a) `gpu-provision plan`, which reads and judges the whole host and has nothing of SSH to do, as `bootstrap`
would not; (b) our role alone, by ansible-playbook; (c) theirs by ansible-playbook, set so that root's key
still gets in. Both plays use pipelining. What counts are the ratios.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from measure import OURS, median, rounds, run
from report import Goal, page

from provision import lab
from provision.converge import settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provision.lab.host import LabHost

RIVAL = "devsec.hardening.ssh_hardening"
# Their defaults close root's login, which is the only one here, and stop at the second account that has none.
RIVAL_VARIABLES = {"ssh_permit_root_login": "prohibit-password", "ssh_allow_users": "root"}
CONFIG = """\
[defaults]
collections_path = {collections}
retry_files_enabled = false

[ssh_connection]
pipelining = true
"""
PROGRAM = Path(sys.executable).with_name("ansible-playbook")


class Play:
    """One role against one host by plain ansible-playbook."""

    def __init__(
        self, folder: Path, host: LabHost, role: str, collections: Path | None, **variables: Any
    ) -> None:
        """`collections` None: those of this project."""
        folder.mkdir()
        target = host.target()
        ssh = {
            "ansible_host": target.address,
            "ansible_user": "root",
            "ansible_ssh_private_key_file": str(target.identity),
            "ansible_ssh_common_args": " ".join(f"-o {option}" for option in target.options),
            "ansible_python_interpreter": "/usr/bin/python3",
        }
        # JSON is YAML.
        (folder / "hosts.yml").write_text(json.dumps({"all": {"hosts": {host.name: ssh}}}), encoding="utf-8")
        # Their role reads Ansible's own facts; ours brings its own.
        play = {"hosts": "all", "gather_facts": role == RIVAL, "vars": variables, "roles": [role]}
        (folder / "play.yml").write_text(json.dumps([play]), encoding="utf-8")
        config = folder / "ansible.cfg"
        if collections is None:
            settings.write(folder, forks=1)
            # The command's own way to hear what happens is no use to a person.
            text = config.read_text(encoding="utf-8")
            text = text.replace("stdout_callback = gpu_provision.host.events\n", "")
            config.write_text(text, encoding="utf-8")
            self.environment = settings.environment(folder)
        else:
            config.write_text(CONFIG.format(collections=collections), encoding="utf-8")
            self.environment = {"ANSIBLE_CONFIG": str(config), "ANSIBLE_HOME": str(folder / "home")}
        self.argv = [str(PROGRAM), "-i", str(folder / "hosts.yml"), str(folder / "play.yml")]

    def once(self) -> str:
        """Play it and show what it said. Exits where it fails."""
        done = subprocess.run(
            self.argv, env={**os.environ, **self.environment}, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            sys.exit(f"{' '.join(self.argv)} failed:\n{done.stdout[-3000:]}{done.stderr[-2000:]}")
        return done.stdout

    def tasks(self) -> int:
        """How many tasks a run executes where all is done; exits where it still changes something."""
        said = self.once()
        if "changed=0" not in said:
            sys.exit(f"a second run still changes something:\n{said[-3000:]}")
        return int(re.findall(r" ok=(\d+)", said)[-1])


@contextmanager
def hosts(release: str) -> Iterator[tuple[LabHost, LabHost]]:
    """Two lab hosts, gone afterwards."""
    names = ("bench-ssh-ours", "bench-ssh-theirs")
    try:
        first, second = (
            lab.up(name, release=release, say=lambda words: print(words, file=sys.stderr)) for name in names
        )
        yield first, second
    finally:
        for name in names:
            if lab.find(name):
                lab.down(name)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--collections", type=Path, required=True, metavar="PATH", help="where devsec.hardening is installed"
    )
    parser.add_argument("--rounds", type=int, default=3, metavar="N")
    parser.add_argument("--release", choices=["bookworm", "trixie"], default="trixie")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the page there, too")
    asked = parser.parse_args()
    if not (asked.collections / "ansible_collections/devsec/hardening").is_dir():
        parser.error(
            f"{asked.collections} has no devsec.hardening; `ansible-galaxy collection install "
            f"devsec.hardening -p {asked.collections}` puts it there, with the collections that it needs"
        )
    with hosts(asked.release) as (mine, other), tempfile.TemporaryDirectory(prefix="gpb-") as name:
        folder = Path(name)
        ours = Play(folder / "ours", mine, "gpu_provision.host.ssh_hardening", None)
        theirs = Play(folder / "theirs", other, RIVAL, asked.collections.resolve(), **RIVAL_VARIABLES)
        for play in (ours, theirs):
            play.once()
        counted = {"ours": ours.tasks(), "theirs": theirs.tasks()}
        taken = rounds(
            {
                "plan": lambda: run((*OURS, "plan", mine.name)),
                "ours": lambda: run(ours.argv, ours.environment),
                "theirs": lambda: run(theirs.argv, theirs.environment),
            },
            asked.rounds,
        )
    seconds = {name: median([r.seconds for r in runs]) for name, runs in taken.items()}
    text = page(goals(seconds, counted), datetime.now(UTC), "ssh.py --write docs/ssh-speed.md")
    print(text, end="")
    if asked.write:
        asked.write.write_text(text, encoding="utf-8")
    return 0


def goals(seconds: dict[str, float], tasks: dict[str, int]) -> list[Goal]:
    beside = f"{seconds['theirs']:.1f} s for {tasks['theirs']} tasks"
    return [
        Goal(
            "their role beside our plan of the whole host",
            seconds["theirs"] / seconds["plan"],
            10,
            f"{beside}, ours {seconds['plan']:.2f} s",
            at_least=True,
        ),
        Goal(
            "their role beside our role",
            seconds["theirs"] / seconds["ours"],
            2,
            f"{beside}, ours {seconds['ours']:.1f} s for {tasks['ours']}",
            at_least=True,
        ),
    ]


if __name__ == "__main__":
    sys.exit(main())
