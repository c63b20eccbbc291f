"""Fleets: what can cut the line is tried on one host first, and nothing goes on behind one that reverted."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from silent import Silent

from provision.controls.model import Disrupts, Finding, Judged, Severity, Status
from provision.converge.result import ConvergeResult, HostResult, Outcome, State
from provision.facts import Facts
from provision.facts.known import Unknown
from provision.plan.model import Plan, Step
from provision.profile.model import Profile
from provision.recording.model import Recording
from provision.report import exits
from provision.runs import bootstrap as flow
from provision.runs import passes
from provision.runs.bootstrap import Consent, bootstrap
from provision.runs.directory import RunDirectory, last_states
from provision.runs.look import Look
from provision.runs.managed import Managed
from provision.transport.target import Target
from provision.verify.result import Check, CheckStatus

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from provision.report.model import Run
    from provision.runs.host import Traveller

CUTS, PLAIN = "ssh_hardening", "nccl"


@dataclass
class World:
    """Hosts that do what is said of them; `log` has each converge: (host, roles) in the order begun."""

    roles: dict[str, tuple[str, ...]]
    ends: dict[str, State] = field(default_factory=dict)
    failing: tuple[str, ...] = ()
    """Hosts whose checks from outside fail."""
    interrupted_at: str = ""
    log: list[list[tuple[str, tuple[str, ...]]]] = field(default_factory=list)
    left: dict[str, list[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.left = {host: list(roles) for host, roles in self.roles.items()}

    def run_pass(
        self, fleet: object, travellers: Iterable[Traveller], *_: object, **__: object
    ) -> ConvergeResult:
        self.log.append([(t.name, t.plan.roles if t.plan else ()) for t in travellers])
        results = {}
        for t in travellers:
            assert t.plan is not None
            end = self.ends.get(t.name, State.DONE) if CUTS in t.plan.roles else State.DONE
            outcome = Outcome.DONE if end is State.DONE else Outcome.FAILED
            if t.name == self.interrupted_at:
                outcome, end = Outcome.INTERRUPTED, State.PARTIAL
            if outcome is Outcome.DONE:
                self.left[t.name] = [role for role in self.left[t.name] if role not in t.plan.roles]
            results[t.name] = _result(t.name, outcome, end, t.plan.roles)
        return ConvergeResult(results, interrupted=self.interrupted_at in results, seconds=1.0)

    def look_at(self, fleet: object, travellers: Iterable[Traveller]) -> None:
        for t in travellers:
            recording = Recording(t.name, "", True, 0.1, {})
            judged = Judged(Facts(recording), Profile("test", {}), Unknown("not resolved"))
            t.look, t.reached = Look(recording, judged, ()), True

    def plan_all(self, fleet: object, travellers: dict[str, Traveller], *_: object, **__: object) -> None:
        self.look_at(fleet, travellers.values())
        for t in travellers.values():
            self.make_plan(t)

    def make_plan(self, t: Traveller) -> None:
        finding = Finding(
            "ssh.port", Status.FAIL, Severity.HIGH, False, "", "", "", (), "", CUTS, Disrupts.NOTHING
        )
        t.plan = Plan(t.name, tuple(Step(role, (finding,)) for role in self.left[t.name]))

    def prove(self, fleet: object, travellers: Sequence[Traveller], *_: object, **__: object) -> None:
        for t in travellers:
            status = CheckStatus.FAILED if t.name in self.failing else CheckStatus.PASSED
            t.checks = (Check(t.name, "ssh.in", "Logging in", status),)

    @property
    def order(self) -> list[list[str]]:
        return [[name for name, _ in wave] for wave in self.log]


def _result(host: str, outcome: Outcome, state: State, roles: tuple[str, ...]) -> HostResult:
    if outcome is Outcome.DONE:
        return HostResult(host, outcome, state, roles, roles, None, None, "", 1, 1, 0, 0, 1.0)
    return HostResult(host, outcome, state, roles, (), CUTS, None, "no login", 1, 1, 0, 0, 1.0)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Bootstrap the hosts of a world; `told` is what was said meanwhile."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    def go(world: World, **more: Any) -> tuple[Run, Silent]:
        for module, name in (
            (passes, "run_pass"),
            (passes, "look_at"),
            (passes, "make_plan"),
            (flow, "plan_all"),
            (flow, "prove"),
        ):
            monkeypatch.setattr(module, name, getattr(world, name))
        hosts = [Managed(Target(name, "192.0.2.1"), Profile("test", {})) for name in world.roles]
        told = Silent()
        report = bootstrap(
            hosts,
            RunDirectory(tmp_path),
            consent=Consent(lambda _: True),
            progress=lambda _: told,
            resume=lambda host: f"resume {host}",
            **more,
        )
        return report, told

    return go


def states(report: Run) -> dict[str, str]:
    return {host.host: host.state for host in report.hosts}


def test_one_host_goes_first_with_what_can_cut_the_line(run: Any) -> None:
    world = World(dict.fromkeys("abc", (CUTS, PLAIN)))
    report, told = run(world)
    assert world.log == [[("a", (CUTS,))], [("a", (PLAIN,)), ("b", (CUTS, PLAIN)), ("c", (CUTS, PLAIN))]]
    assert set(states(report).values()) == {"done"}
    assert "a goes first with ssh_hardening" in told.said[0]
    assert [host.planned for host in report.hosts] == [(CUTS, PLAIN)] * 3


@pytest.mark.parametrize(
    "roles", [{"a": (CUTS,)}, {"a": (CUTS, PLAIN), "b": (PLAIN,)}, dict.fromkeys("ab", (PLAIN,))]
)
def test_nobody_waits_where_at_most_one_line_could_be_cut(
    run: Any, roles: dict[str, tuple[str, ...]]
) -> None:
    world = World(roles)
    run(world)
    assert world.order == [list(roles)]


@pytest.mark.parametrize("end", [State.REVERTED, State.UNTOUCHED, State.PARTIAL])
def test_behind_one_that_ends_badly_the_others_stay_untouched(run: Any, end: State) -> None:
    world = World(dict.fromkeys("abc", (CUTS, PLAIN)), ends={"a": end})
    report, _ = run(world)
    assert world.order == [["a"]]
    assert states(report) == {"a": str(end), "b": "untouched", "c": "untouched"}
    for host in report.hosts[1:]:
        assert host.trouble is not None
        assert f"not begun: a went before it and was left {end}" in host.trouble
        assert exits.of_host_run(host) == 1
    assert exits.of_run(report) == 1


def test_the_others_go_by_forks_and_stop_at_the_first_that_reverted(run: Any) -> None:
    world = World(dict.fromkeys("abcdef", (CUTS,)), ends={"c": State.REVERTED})
    report, _ = run(world, forks=2)
    assert world.order == [["a"], ["b", "c"]]
    assert states(report) == {
        "a": "done", "b": "done", "c": "reverted", "d": "untouched", "e": "untouched", "f": "untouched",
    }  # fmt: skip
    assert "c went before it and was left reverted" in (report.hosts[3].trouble or "")


def test_one_that_fails_without_a_cut_line_holds_up_nobody(run: Any) -> None:
    world = World(dict.fromkeys("abcd", (CUTS,)), ends={"b": State.PARTIAL})
    report, _ = run(world, forks=2)
    assert world.order == [["a"], ["b", "c"], ["d"]]
    assert states(report)["d"] == "done"


def test_a_canary_goes_the_whole_way_before_the_others(run: Any) -> None:
    world = World(dict.fromkeys("abc", (PLAIN, CUTS)))
    report, _ = run(world, canary=True)
    assert world.log[0] == [("a", (PLAIN, CUTS))]
    assert world.order == [["a"], ["b", "c"]]
    assert set(states(report).values()) == {"done"}
    assert all(len(host.checks) == 1 for host in report.hosts)


def test_a_canary_that_proves_nothing_stops_the_others(run: Any) -> None:
    world = World(dict.fromkeys("ab", (PLAIN,)), failing=("a",))
    report, _ = run(world, canary=True)
    assert world.order == [["a"]]
    assert states(report) == {"a": "done", "b": "untouched"}
    assert "does not do what it is meant to" in (report.hosts[1].trouble or "")
    assert exits.of_run(report) == 1


@pytest.mark.parametrize("canary", [False, True])
def test_an_interrupted_first_host_leaves_the_others_untouched(run: Any, canary: bool) -> None:
    world = World(dict.fromkeys("ab", (CUTS,)), interrupted_at="a")
    report, _ = run(world, canary=canary)
    assert world.order == [["a"]]
    assert states(report) == {"a": "partial", "b": "untouched"}
    assert exits.of_run(report) == 130


def test_a_host_resumes_from_the_newest_run_that_had_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    now = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)
    for number in range(11):
        RunDirectory.new("bootstrap", now).write_states({"a": "partial" if number == 10 else "done"})
    RunDirectory.new("bootstrap", now + timedelta(seconds=1)).write_states({"b": "done"})
    RunDirectory.new("bootstrap", now + timedelta(seconds=2))  # came to no state
    RunDirectory.new("apply", now + timedelta(seconds=3)).write_states({"c": "done"})
    assert last_states("bootstrap", "abc") == {"a": "partial", "b": "done"}


def test_who_is_killed_in_the_middle_of_a_pass_leaves_the_hosts_partial(run: Any, tmp_path: Path) -> None:
    class Killed(World):
        def run_pass(self, *_: Any, **__: Any) -> ConvergeResult:
            self.seen = RunDirectory(tmp_path).states()
            return super().run_pass(*_, **__)

    world = Killed(dict.fromkeys("ab", (PLAIN,)))
    run(world, canary=True)
    assert world.seen == {"a": "done", "b": "partial"}


def test_a_file_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(TypeError):
        RunDirectory(tmp_path).write("report.json", {"x": object()})
    assert not list(tmp_path.iterdir())
