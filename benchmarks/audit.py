"""`gpu-provision audit` beside what a user would pick instead, in one run on lab hosts (as root).

    python benchmarks/audit.py [--rounds 5] [--rival-rounds 2] [--fleet 20] [--write docs/speed.md]

Measured in rounds, each command once a round: (a) `ssh host true` on a connection of its own, (b) our
audit of an address with all controls, (c) testinfra over SSH asking forty of the same questions, (d)
Ansible with pipelining asking the same forty. With `--fleet N`, N lab hosts at once by ours and by Ansible.
What counts are the ratios: seconds differ between machines, and with what else a machine does.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING

import rivals
from measure import OURS, Run, median, rounds, run
from questions import QUESTIONS
from report import Goal, page

from provision import lab

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from provision.lab.host import LabHost

PYTHON = (sys.executable, "-c", "pass")
JUDGED_AT_ONCE = 300


@dataclass(frozen=True)
class Bench:
    """A folder for the run, in which `ssh` finds every lab host by its address alone, for all four alike."""

    folder: Path
    environment: dict[str, str]

    def ours(self, *words: str) -> Run:
        return run((*OURS, *words), self.environment)

    def record(self, address: str) -> dict[str, dict[str, object]]:
        """The items of a host."""
        file = self.folder / f"{address}.json"
        self.ours("record", address, "--out", str(file))
        items: dict[str, dict[str, object]] = json.loads(file.read_text(encoding="utf-8"))["items"]
        return items


def bench(folder: Path, host: LabHost) -> Bench:
    target = host.target()
    settings = [
        "User root",
        f"IdentityFile {target.identity}",
        *(o.replace("=", " ", 1) for o in target.options),
    ]
    (folder / "ssh_config").write_text("Host *\n" + "".join(f"  {line}\n" for line in settings))
    (folder / "bin").mkdir()
    ssh = folder / "bin" / "ssh"
    ssh.write_text(f'#!/bin/sh\nexec {which("ssh")} -F {folder / "ssh_config"} "$@"\n')
    ssh.chmod(0o755)
    return Bench(folder, {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}"})


def one_host(at: Bench, address: str, count: int, rival_count: int) -> list[Goal]:
    """(a) to (d) on one host."""
    slowest: list[float] = []
    asked: list[int] = []

    def recorded() -> Run:
        items = at.record(address)
        answered = [item for item in items.values() if "not_asked" not in item]
        slowest.append(max(float(str(item.get("seconds", 0.0))) for item in answered))
        asked.append(len(answered))
        return Run(0.0, 0.0, 0.0)

    quick = rounds(
        {
            "ssh": lambda: run(["ssh", address, "true"], at.environment),
            "ours": lambda: at.ours("audit", address),
            "recorded": recorded,
        },
        count,
    )
    suite = rivals.testinfra(at.folder, [address])
    play, steering = rivals.ansible(at.folder, [address])
    slow = rounds(
        {
            "ours": lambda: at.ours("audit", address),
            "testinfra": lambda: run(suite, at.environment),
            "ansible": lambda: run(play, {**at.environment, **steering}),
        },
        rival_count,
        warm=False,
    )
    ssh, ours = seconds(quick["ssh"]), seconds(quick["ours"])
    item, per_question = median(slowest), median(asked)
    found = [
        Goal(
            "audit of one host, less its slowest item, beside `ssh host true`",
            (ours - item) / ssh,
            2.5,
            f"(b) {ours:.2f} s, (a) {ssh:.2f} s, slowest item {item:.2f} s",
        )
    ]
    for name in ("testinfra", "ansible"):
        mine = seconds(slow["ours"]) / per_question
        theirs = seconds(slow[name]) / len(QUESTIONS)
        found.append(
            Goal(
                f"one question of {name} beside one of ours",
                theirs / mine,
                25,
                f"{seconds(slow[name]):.1f} s for {len(QUESTIONS)}, ours {seconds(slow['ours']):.2f} s for "
                f"{per_question:.0f}",
                at_least=True,
            )
        )
    return found


def start_up(at: Bench, file: Path, count: int) -> list[Goal]:
    """How long the command takes to begin: the shortest run, which other work has stretched least."""
    taken = rounds(
        {
            "python": lambda: run(PYTHON),
            "--help": lambda: run((*OURS, "--help")),
            "audit --recording": lambda: run((*OURS, "audit", "--recording", str(file))),
        },
        2 * count,
    )
    base = min(r.seconds for r in taken.pop("python"))
    return [
        Goal(
            f"`{name}` above `python3 -c pass`, seconds",
            min(r.seconds for r in runs) - base,
            0.3,
            f"median {seconds(runs):.2f} s, of the processor {min(r.own for r in runs):.2f} s",
        )
        for name, runs in taken.items()
    ]


def many_recordings(at: Bench, file: Path) -> list[Goal]:
    """A whole fleet's recordings judged by one command."""
    document = json.loads(file.read_text(encoding="utf-8"))
    words = []
    for number in range(JUDGED_AT_ONCE):
        copy = at.folder / f"many-{number}.json"
        copy.write_text(json.dumps({**document, "host": f"gpu{number:03}"}), encoding="utf-8")
        words += ["--recording", str(copy)]
    done = at.ours("audit", *words, "--format", "json")
    each = done.own / JUDGED_AT_ONCE * 1000
    return [
        Goal(
            f"memory of {JUDGED_AT_ONCE} recordings judged at once, MB",
            done.peak,
            200,
            f"{each:.0f} ms of the processor a recording",
        )
    ]


def fleet(at: Bench, addresses: Sequence[str], count: int) -> list[Goal]:
    """All hosts at once, by ours and by Ansible."""
    play, steering = rivals.ansible(at.folder, addresses)
    ours = rounds({"ours": lambda: at.ours("audit", *addresses)}, count)["ours"]
    theirs = run(play, {**at.environment, **steering})
    own = median([r.own for r in ours]) / len(addresses) * 1000
    return [
        Goal(
            f"{len(addresses)} hosts at once, seconds",
            seconds(ours),
            5,
            f"Ansible, 40 questions: {theirs.seconds:.0f} s, {theirs.seconds / seconds(ours):.0f} times it",
        ),
        Goal("processor time of our own a host, ms", own, 100, "beside what ssh itself takes"),
    ]


def seconds(runs: Sequence[Run]) -> float:
    return median([r.seconds for r in runs])


@contextmanager
def hosts(count: int) -> Iterator[list[LabHost]]:
    """Lab hosts of our own, gone afterwards."""
    names = [f"bench-{number}" for number in range(count)]
    try:
        yield [lab.up(name, say=lambda words: print(words, file=sys.stderr)) for name in names]
    finally:
        for name in names:
            if lab.find(name):
                lab.down(name)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5, metavar="N")
    parser.add_argument("--rival-rounds", type=int, default=2, metavar="N")
    parser.add_argument(
        "--fleet", type=int, default=0, metavar="HOSTS", help="lab hosts at once (20 is the goal's)"
    )
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the page there, too")
    asked = parser.parse_args()
    with hosts(max(1, asked.fleet)) as up, tempfile.TemporaryDirectory(prefix="gpb-") as name:
        at = bench(Path(name), up[0])
        addresses = [host.address for host in up]
        goals = one_host(at, addresses[0], asked.rounds, asked.rival_rounds)
        recording = at.folder / f"{addresses[0]}.json"
        goals += start_up(at, recording, asked.rounds)
        goals += many_recordings(at, recording)
        if asked.fleet:
            goals += fleet(at, addresses, asked.rounds)
    text = page(goals, datetime.now(UTC))
    print(text, end="")
    if asked.write:
        asked.write.write_text(text, encoding="utf-8")
    return int(not all(goal.met for goal in goals))


if __name__ == "__main__":
    sys.exit(main())
