"""Converge hosts: run their planned roles with Ansible and tell what came of it."""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import Failure
from ..profile import tree
from ..transport import ssh
from . import inventory, settings
from .events import Event, Kind, TaskStatus
from .process import Playbook
from .result import ConvergeResult, Fold

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterator, Mapping

    from ..transport.target import Target
    from .hosts import HostVars

SITE = "gpu_provision.host.site"
GRACE_SECONDS = 20.0


def converge(
    hosts: Mapping[str, HostVars],
    run_dir: Path,
    *,
    on_event: Callable[[Event], None] = lambda event: None,
    forks: int = 20,
    check: bool = False,
    cancel: threading.Event | None = None,
    grace: float = GRACE_SECONDS,
    playbook: str = SITE,
) -> ConvergeResult:
    """Run each host's roles on it; hosts are independent of one another.

    Writes inventory.yml, ansible.cfg, ansible.log and events.jsonl (appended) below `run_dir`; nothing
    else of this machine is written, and no secret. `check` runs Ansible's check mode with diffs. A
    Ctrl-C, or `cancel` being set, stops between two tasks, after at most `grace` seconds in the middle
    of one; the result then says in which. Raises Failure where Ansible itself did not get going.
    """
    aliases = inventory.aliases(list(hosts))
    names = {alias: name for name, alias in aliases.items()}
    targets = {aliases[name]: host.target for name, host in hosts.items()}
    fold = Fold({aliases[name]: host.roles for name, host in hosts.items()})
    run_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    settings.write(run_dir, forks=forks)
    (run_dir / "ansible.log").touch(mode=0o600)
    inventory.write(
        run_dir / "inventory.yml", {aliases[n]: inventory.variables_of(h) for n, h in hosts.items()}
    )
    began = time.monotonic()
    with (
        private_directory() as private,
        _events_file(run_dir) as record,
        (run_dir / "ansible.log").open("ab") as log,
    ):
        secrets = private / "secrets.yml"
        inventory.write(secrets, {aliases[n]: h.secrets for n, h in hosts.items()})
        argv = _argv(playbook, run_dir, secrets, hosts, check)

        def heard(event: Event) -> None:
            # Ansible has read its inventories once a play begins.
            if event.kind is Kind.PLAY:
                secrets.unlink(missing_ok=True)
            event = _explained(event, targets)
            fold.add(event)
            on_event(replace(event, host=names.get(event.host, event.host)) if event.host else event)

        def read(line: str) -> None:
            record(line)
            if event := Event.from_line(line):
                heard(event)

        def stopping() -> None:
            says = f"stopping: the tasks that run now have {grace:.0f} s to end; Ctrl-C again stops at once"
            heard(Event(Kind.STOPPING, time.time(), message=says))

        process = Playbook(
            argv,
            cwd=run_dir,
            env=settings.environment(run_dir),
            log=log,
            stop_file=private / "stop",
            grace=grace,
            wants_stop=lambda: cancel is not None and cancel.is_set(),
            on_stop=stopping,
        )
        code = process.follow(read)
    if not fold.began and not process.stopped:
        raise Failure(f"Ansible did not start: {_reason(run_dir / 'ansible.log')} (exit code {code})")
    seconds = time.monotonic() - began
    return fold.result(names, interrupted=process.stopped, seconds=seconds, now=time.time())


def _argv(
    playbook: str, run_dir: Path, secrets: Path, hosts: Mapping[str, HostVars], check: bool
) -> list[str]:
    # -P: a file in the run directory must not shadow a module of ours.
    argv = [sys.executable, "-P", "-m", "ansible", "playbook", playbook]
    argv += ["-i", str(run_dir / "inventory.yml"), "-i", str(secrets)]
    if check:
        argv += ["--check", "--diff"]
    planned = {role for host in hosts.values() for role in host.roles}
    if playbook == SITE and (unused := [role for role in tree.role_order() if role not in planned]):
        # Roles that no host needs cost nothing; one that only some need is skipped on the others.
        argv += ["--skip-tags", ",".join(unused)]
    return argv


def _explained(event: Event, targets: Mapping[str, Target | None]) -> Event:
    """A lost connection in the words that the rest of the command uses for it, instead of ssh's."""
    target = targets.get(event.host or "")
    if event.status is not TaskStatus.UNREACHABLE or target is None or target.local:
        return event
    why = ssh.explain(event.message, target)
    return replace(event, message=f"{why.says}\n{why.do}".strip())


@contextmanager
def private_directory() -> Iterator[Path]:
    """A directory that only we can read, in memory where the system offers that, gone afterwards."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    places = [p for p in (runtime, "/dev/shm") if p and Path(p).is_dir() and os.access(p, os.W_OK | os.X_OK)]
    path = Path(tempfile.mkdtemp(prefix="gpu-provision-", dir=places[0] if places else None))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


@contextmanager
def _events_file(run_dir: Path) -> Iterator[Callable[[str], None]]:
    descriptor = os.open(run_dir / "events.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with os.fdopen(descriptor, "a", encoding="utf-8", buffering=1) as out:
        yield lambda line: (out.write(line + "\n"), None)[1]


def _reason(log: Path) -> str:
    """Ansible's own words for not starting, from the end of its log."""
    text = log.read_text(encoding="utf-8", errors="replace").strip()
    errors = re.findall(r"^(?:\[ERROR\]:|ERROR!)\s*(.+?)(?=^\[|^\s*$|\Z)", text, re.MULTILINE | re.DOTALL)
    said = errors[-1] if errors else "\n".join(text.splitlines()[-5:])
    return " ".join(said.split()) or f"it said nothing; see {log}"
