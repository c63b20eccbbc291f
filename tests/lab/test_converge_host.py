"""Converging, rebooting and verifying one lab host by the rooms' own functions, over one open session."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from provision import lab
from provision.converge import Event, HostVars, Kind, Outcome, connection, converge
from provision.converge.reboot import boot_id, reboot
from provision.facts.known import Unknown
from provision.profile.declared import declared
from provision.profile.model import Profile
from provision.recording import remote
from provision.transport import ssh
from provision.verify.result import CheckStatus
from provision.verify.run import verify
from provision.verify.subject import Subject

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provision.converge import ConvergeResult
    from provision.verify.result import Check

pytestmark = pytest.mark.skipif(lab.can_run() is not None, reason=str(lab.can_run()))

DEFAULTS = {name: v.default for name, v in declared().items() if v.default is not None}
NO_STACK = {"unknown": "these roles need none"}


@dataclass
class Bench:
    """A lab host with a session to it."""

    session: ssh.Session
    folder: Path

    def converge(self, *roles: str, check: bool = False, events: list[Event] | None = None) -> ConvergeResult:
        target = self.session.target
        ways = connection(
            target,
            python="/usr/bin/python3",
            login_is_root=True,
            control_path=self.session.control_path,
            options=ssh.options(target),
        )
        variables = {**DEFAULTS, **ways, "gpu_provision_stack": NO_STACK}
        host = HostVars(target.name, roles, variables, target=target)
        heard = events if events is not None else []
        return converge({target.name: host}, self.folder, on_event=heard.append, check=check)

    def verify(self) -> dict[str, Check]:
        target = self.session.target
        recording = remote.record(self.session, target=target)
        profile = Profile("defaults", DEFAULTS)
        subject = Subject(target, profile, Unknown("not asked"), recording, self.session.control_path)
        return {c.name: c for c in verify([subject], self.folder).checks[target.name]}

    def run(self, command: str) -> str:
        return self.session.run(["sh", "-c", command]).out


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    host = lab.up("converge")
    try:
        with tempfile.TemporaryDirectory() as folder, ssh.Session(host.target(), Path(folder)) as session:
            session.open()
            yield Bench(session, Path(folder, "run"))
    finally:
        lab.down(host.name)


FILES = "find /etc /root -xdev -type f -exec sha256sum {} + | grep -v /.ansible/ | sort"


def test_check_mode_shows_what_would_change_and_changes_nothing(bench: Bench) -> None:
    before = bench.run(FILES)
    result = bench.converge("nccl", check=True)
    assert result.ok, result.as_dict()
    assert "+NCCL_SOCKET_IFNAME=" in result.diffs["converge"]
    assert bench.run(FILES) == before


def test_planned_roles_run_over_the_open_session_and_others_do_not(bench: Bench) -> None:
    logins = "journalctl -u ssh.service --no-pager | grep -c 'Accepted publickey'"
    before = int(bench.run(logins))
    events: list[Event] = []
    result = bench.converge("nccl", events=events)
    host = result.hosts["converge"]
    assert host.outcome is Outcome.DONE, host.message
    assert (host.roles_done, host.changed) == (("nccl",), 1)
    assert {e.role for e in events if e.kind is Kind.TASK} == {"nccl"}
    assert int(bench.run(logins)) == before
    again = bench.converge("nccl").hosts["converge"]
    assert (again.outcome, again.changed) == (Outcome.DONE, 0)


def test_verify_tells_an_open_door_from_a_closed_one_also_after_a_reboot(bench: Bench) -> None:
    open_door = bench.verify()
    assert open_door["ssh.key-gets-in"].status is CheckStatus.PASSED
    assert open_door["ssh.password-is-refused"].status is CheckStatus.FAILED
    assert "still offers password" in open_door["ssh.password-is-refused"].message
    assert bench.converge("ssh_hardening").ok
    closed = bench.verify()
    ssh_checks = {name: c.status for name, c in closed.items() if name.startswith("ssh.")}
    # Nobody is named in ssh_hardening_admins here.
    assert ssh_checks.pop("ssh.administrators-get-in") is CheckStatus.SKIPPED
    assert set(ssh_checks.values()) == {CheckStatus.PASSED}
    assert closed["gpu.every-card-answers"].message == "nvidia-smi is not installed"

    first = boot_id(bench.session)
    reboot(bench.session.target)
    bench.session.close()
    assert boot_id(bench.session) != first
    assert bench.verify()["ssh.password-is-refused"].status is CheckStatus.PASSED
