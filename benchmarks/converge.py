"""How many tasks the roles execute and how long they take: a first run, and runs with nothing to do.

    python benchmarks/converge.py [--host NAME] [--profile PRESET] [--set VARIABLE=VALUE]... [--runs 3]

All roles run on a lab host, which is started where it is not there; with nothing to do the command itself
would start no Ansible at all, so that this is the cost of the roles used without it. The package manager's
own time (what apt and DKMS take) is told apart: it is the archive's and the compiler's.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from provision import lab
from provision.converge import Event, HostVars, Kind, TaskStatus, connection, converge
from provision.profile import presets, tree
from provision.profile.compose import compose
from provision.transport import ssh

PACKAGES = ("gpu_provision.host.apt_transaction", "gpu_provision.host.apt_sources")
FETCHES = "/run/gpu-provision-bench-fetches"
# apt runs this before it fetches package lists, whoever asks it to.
HOOK = "/etc/apt/apt.conf.d/99gpu-provision-bench"
HOOK_TEXT = f'APT::Update::Pre-Invoke {{ "echo fetched >> {FETCHES}"; }};\n'


@dataclass
class Run:
    """What one play of all roles did. Seconds by the clock; `packages` is the package manager's part."""

    seconds: float = 0.0
    packages: float = 0.0
    executed: int = 0
    changed: int = 0
    skipped: int = 0
    fetches: int = 0
    roles: dict[str, float] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)

    def hear(self, event: Event) -> None:
        if event.kind is not Kind.RESULT:
            return
        spent = event.seconds or 0.0
        self.skipped += event.status is TaskStatus.SKIPPED
        self.executed += event.status is not TaskStatus.SKIPPED
        self.changed += event.status is TaskStatus.CHANGED
        self.packages += spent if event.action in PACKAGES else 0.0
        self.roles[event.role or "-"] = self.roles.get(event.role or "-", 0.0) + spent
        if event.status in (TaskStatus.FAILED, TaskStatus.UNREACHABLE) and not event.ignored:
            self.failed.append(f"{event.role}: {event.task}: {event.message[:300]}")


def play(session: ssh.Session, roles: tuple[str, ...], variables: dict[str, Any]) -> Run:
    """One play of the roles over an open session."""
    target, run = session.target, Run()
    session.run(["rm", "-f", FETCHES], b"", 20.0)
    ways = connection(
        target,
        python="/usr/bin/python3",
        login_is_root=True,
        control_path=session.control_path,
        options=ssh.options(target),
    )
    host = HostVars(target.name, roles, {**variables, **ways}, target=target)
    with tempfile.TemporaryDirectory(prefix="gp-bench-") as folder:
        run.seconds = converge({target.name: host}, Path(folder), on_event=run.hear).seconds
    run.fetches = len(session.run(["cat", FETCHES], b"", 20.0).out.splitlines())
    return run


def variables_of(preset: str, settings: list[str]) -> dict[str, Any]:
    """The profile's variables that are set, as the command would hand them to Ansible."""
    chosen = {name: yaml.safe_load(value) for name, _, value in (text.partition("=") for text in settings)}
    name, given = presets.load(preset)
    return {k: v for k, v in compose(name, given, {}, chosen).variables.items() if v is not None}


def row(name: str, run: Run) -> str:
    own = run.seconds - run.packages
    return (
        f"{name:12}{run.executed:>10}{run.changed:>9}{run.skipped:>9}{run.seconds:>10.1f}{run.packages:>10.1f}"
        f"{own:>8.1f}{run.fetches:>9}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--host", default="bench-converge", metavar="NAME")
    parser.add_argument("--gpus", default="T4:1", metavar="MODEL:COUNT")
    parser.add_argument("--profile", default="research", metavar="PRESET")
    parser.add_argument("--set", action="append", default=[], metavar="VARIABLE=VALUE")
    parser.add_argument("--roles", default=",".join(tree.role_order()), metavar="ROLE,…")
    parser.add_argument("--runs", type=int, default=3, metavar="N")
    asked = parser.parse_args()
    roles, variables = tuple(asked.roles.split(",")), variables_of(asked.profile, asked.set)
    host = lab.find(asked.host) or lab.up(asked.host, gpus=asked.gpus)
    (host.root / HOOK.lstrip("/")).write_text(HOOK_TEXT)
    heads = (("executed", 10), ("changed", 9), ("skipped", 9), ("seconds", 10), ("packages", 10), ("own", 8))
    print(" " * 12 + "".join(f"{head:>{width}}" for head, width in (*heads, ("fetches", 9))))
    try:
        with (
            tempfile.TemporaryDirectory(prefix="gp-") as folder,
            ssh.Session(host.target(), Path(folder)) as session,
        ):
            runs = [play(session, roles, variables) for _ in range(asked.runs + 1)]
    finally:
        (host.root / HOOK.lstrip("/")).unlink()
    for number, run in enumerate(runs):
        print(row("first" if number == 0 else f"no-op {number}", run))
        print("\n".join(f"    failed: {text}" for text in run.failed), end="\n" if run.failed else "")
    slowest = sorted(runs[-1].roles.items(), key=lambda item: -item[1])
    print("last run by role: " + ", ".join(f"{role} {seconds:.1f} s" for role, seconds in slowest))
    idle = all(run.changed == 0 and run.fetches == 0 for run in runs[1:])
    print(f"nothing changed and nothing was fetched after the first run: {'yes' if idle else 'no'}")
    return int(not idle or any(run.failed for run in runs))


if __name__ == "__main__":
    sys.exit(main())
