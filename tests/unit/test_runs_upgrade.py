"""Upgrades over hosts that are not there: what is refused, what is put back, resumed and remembered."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from planner_host import said
from silent import Silent

from provision.controls.model import Disrupts, Finding, Judged, Severity, Status
from provision.converge.result import ConvergeResult, HostResult, Outcome, State
from provision.facts import Facts
from provision.facts.known import Unknown
from provision.plan import upgrade as rules
from provision.plan.model import Plan, Step
from provision.profile.model import Profile
from provision.recording.model import Recording
from provision.runs import going_back
from provision.runs.directory import RunDirectory
from provision.runs.history import history
from provision.runs.host import Traveller
from provision.runs.look import LOADED, Look
from provision.runs.upgrade import COMMAND, Upgrade, earlier

if TYPE_CHECKING:
    from pathlib import Path


def finding(control: str, status: Status = Status.PASS, actual: str = "") -> Finding:
    return Finding(
        control, status, Severity.HIGH, False, "A rule", "", actual, (), "", None, Disrupts.NOTHING
    )


def look(*findings: Finding, **items: Any) -> Look:
    facts = Facts(Recording("a", "", True, 0.1, items))
    return Look(facts.recording, Judged(facts, Profile("p", {}), Unknown("not resolved")), findings)


def result(outcome: Outcome = Outcome.DONE, state: State = State.DONE, message: str = "") -> HostResult:
    return HostResult("a", outcome, state, (), ("nvidia_driver",), None, None, message, 1, 1, 0, 0, 1.0)


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunDirectory:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return RunDirectory.new(COMMAND, datetime(2026, 12, 1, tzinfo=UTC))


@pytest.fixture
def back(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The way back without a host: `came` is how it ends, `seen` what the host shows then."""
    world: dict[str, Any] = {"came": result(), "seen": look(finding("gpu.count")), "plays": []}

    def play(fleet: object, travellers: list[Traveller], *_: object, **__: object) -> ConvergeResult:
        world["plays"].append([t.name for t in travellers])
        return ConvergeResult({t.name: world["came"] for t in travellers}, False, 1.0)

    def look_at(fleet: object, travellers: list[Traveller]) -> None:
        for traveller in travellers:
            traveller.look = world["seen"]

    monkeypatch.setattr(going_back, "play", play)
    monkeypatch.setattr(going_back, "look_at", look_at)
    return world


def moved(
    directory: RunDirectory, *, goes_back: bool = True, snapshots: bool = True
) -> tuple[Upgrade, Traveller]:
    """An upgrade of one host whose set was moved; before it, gpu.count held."""
    course = Upgrade(
        directory,
        {"a": "s1"} if snapshots else {},
        {},
        go_back_on_failure=goes_back,
        may_reboot=False,
        forks=1,
    )
    host = Traveller("a", "", look=look(finding("gpu.count"), finding("updates.schedule")), reached=True)
    host.plan = Plan("a", (Step("nvidia_driver", ()),))
    course.planned(host)
    assert host.failure is None
    host.plan = Plan("a")
    host.passes.append(result())
    return course, host


def test_what_held_and_holds_stays_moved(directory: RunDirectory, back: dict[str, Any]) -> None:
    course, host = moved(directory)
    host.look = look(finding("gpu.count"), finding("updates.schedule", Status.FAIL))
    course.proven(None, [host], Silent())  # type: ignore[arg-type]
    assert host.failure is None
    assert host.state == "done"
    assert back["plays"] == []


@pytest.mark.parametrize("status", [Status.FAIL, Status.UNKNOWN])
def test_what_held_and_does_not_any_more_takes_the_host_back(
    directory: RunDirectory, back: dict[str, Any], status: Status
) -> None:
    course, host = moved(directory)
    host.look = look(finding("gpu.count", status, "1 of 2"))
    course.proven(None, [host], Silent())  # type: ignore[arg-type]
    assert back["plays"] == [["a"]]
    assert host.finished().state == "reverted"
    assert host.failure is not None
    assert "(gpu.count): 1 of 2; the host was put back to s1" in host.failure.says


def test_a_role_that_fails_takes_the_host_back_and_a_way_back_that_fails_leaves_it_partial(
    directory: RunDirectory, back: dict[str, Any]
) -> None:
    from provision.errors import Failure

    course, host = moved(directory)
    host.passes[-1] = result(Outcome.FAILED, State.PARTIAL, "postinst failed")
    host.failure = Failure("postinst failed", host="a")
    back["came"] = result(Outcome.FAILED, State.PARTIAL, "the disk is full")
    course.proven(None, [host], Silent())  # type: ignore[arg-type]
    assert host.finished().state == "partial"
    assert host.failure is not None
    assert host.failure.says == "postinst failed; the way back stopped: the disk is full"


def test_a_way_back_that_is_interrupted_leaves_the_host_partial(
    directory: RunDirectory, back: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    course, host = moved(directory)
    host.look = look(finding("gpu.count", Status.FAIL))
    monkeypatch.setattr(going_back, "play", interrupted)
    with pytest.raises(KeyboardInterrupt):
        course.proven(None, [host], Silent())  # type: ignore[arg-type]
    assert host.state == "partial"


@pytest.mark.parametrize(
    ("last", "reboot"),
    [
        (result(Outcome.UNREACHABLE, State.PARTIAL), ""),
        (result(Outcome.FAILED, State.UNTOUCHED), ""),
        (result(), "the loaded driver is another one"),
    ],
)
def test_a_host_that_is_gone_untouched_or_waits_for_a_reboot_is_not_put_back(
    directory: RunDirectory, back: dict[str, Any], last: HostResult, reboot: str
) -> None:
    course, host = moved(directory)
    host.passes[-1], host.reboot, host.look = last, reboot, look(finding("gpu.count", Status.FAIL))
    course.proven(None, [host], Silent())  # type: ignore[arg-type]
    assert back["plays"] == []


@pytest.mark.parametrize(("goes_back", "snapshots"), [(False, True), (True, False)])
def test_kept_on_failure_the_host_says_how_to_go_back_where_there_is_a_way(
    directory: RunDirectory, back: dict[str, Any], goes_back: bool, snapshots: bool
) -> None:
    course, host = moved(directory, goes_back=goes_back, snapshots=snapshots)
    host.look = look(finding("gpu.count", Status.FAIL))
    course.proven(None, [host], Silent())  # type: ignore[arg-type]
    assert back["plays"] == []
    assert host.state == "partial"
    assert host.failure is not None
    assert ("rollback a s1" in host.failure.do) is snapshots


def resumed(directory: RunDirectory, *findings: Finding) -> tuple[Upgrade, Traveller]:
    """A host whose set an earlier run moved; it was restarted by hand meanwhile, or was not."""
    before = {"a": ["gpu.count", LOADED]}
    course = Upgrade(directory, {"a": "s1"}, before, go_back_on_failure=True, may_reboot=False, forks=1)
    host = Traveller("a", "", look=look(*findings), plan=Plan("a"), reached=True)
    course.planned(host)
    course.proven(None, [host], Silent())  # type: ignore[arg-type]
    return course, host


def test_one_that_was_restarted_by_hand_is_judged_when_it_goes_on(
    directory: RunDirectory, back: dict[str, Any]
) -> None:
    fine = (finding("gpu.count"), finding(LOADED))
    assert resumed(directory, *fine)[1].finished().state == "done"
    assert resumed(directory, finding("gpu.count", Status.FAIL))[1].finished().state == "reverted"


def test_one_that_still_waits_for_its_restart_goes_on_waiting(
    directory: RunDirectory, back: dict[str, Any]
) -> None:
    stale = (finding("gpu.count", Status.UNKNOWN), finding(LOADED, Status.FAIL, "580 loaded"))
    host = resumed(directory, *stale)[1].finished()
    assert (host.state, host.reboot) == ("partial", "A rule: 580 loaded")
    assert back["plays"] == []


def test_a_driver_that_complains_of_its_module_waits_for_a_reboot_in_a_container_too() -> None:
    host = Traveller("a", "", look=look(finding(LOADED, Status.SKIP)))
    host.passes.append(result())
    assert host.waits_for_reboot() == ""
    mismatch = {
        "rc": 18,
        "stdout": "Failed to initialize NVML: Driver/library version mismatch\n",
        "stderr": "",
    }
    host.look = look(finding(LOADED, Status.SKIP), **{"nvidia-smi.query": mismatch})
    assert "another release than the one that is installed" in host.waits_for_reboot()


def space(folder: str, available: int) -> dict[str, Any]:
    row = {"target": folder, "size": 10**12, "available": available, "inodes": 9, "inodes_free": 9}
    return {"disks.space": said(json.dumps([row]))}


def test_a_sick_or_full_host_is_refused_before_anything_is_touched(directory: RunDirectory) -> None:
    sick = look(finding("gpu.xid", Status.FAIL, "Xid 79"), finding("gpu.clocks", Status.FAIL))
    assert rules.refusals(sick.judged, sick.findings, begun=False, snapshot=True) == (
        "A rule (gpu.xid): Xid 79",
    )
    assert rules.refusals(sick.judged, sick.findings, begun=True, snapshot=True) == ()
    course = Upgrade(directory, {}, {}, go_back_on_failure=True, may_reboot=False, forks=1)
    host = Traveller("a", "", look=sick, plan=Plan("a", (Step("nvidia_driver", ()),)))
    course.planned(host)
    assert host.failure is not None
    assert "nothing was touched" in host.failure.says
    assert not host.goes_on


def test_a_root_that_cannot_be_kept_stops_an_upgrade_unless_told_to_go_without() -> None:
    from dataclasses import replace

    full = look(finding("updates.snapshot", Status.WARN, "no free extent"))
    for required, snapshot, count in ((True, True, 1), (False, True, 0), (True, False, 0)):
        judged = replace(full.judged, profile=Profile("p", {"snapshot_required": required}))
        assert len(rules.refusals(judged, full.findings, begun=False, snapshot=snapshot)) == count


def test_one_that_goes_on_is_held_against_what_held_before_the_first_run(directory: RunDirectory) -> None:
    moved(directory)
    directory.write_states({"a": "partial"})
    later = RunDirectory.new(COMMAND, datetime(2026, 12, 2, tzinfo=UTC))
    later.write_states({"b": "done"})
    assert earlier(["a"]) == ({"a": "s1"}, {"a": ["gpu.count"]})


def test_history_is_newest_first_and_tells_of_a_run_that_was_killed(directory: RunDirectory) -> None:
    moved(directory)
    directory.write_states({"a": "partial"})
    later = RunDirectory.new("rollback", datetime(2026, 12, 2, tzinfo=UTC))
    later.write_states({"a": "done"})
    later.write("plan.json", {"snapshot": "s1", "changes": []})
    passes = [{"roles_done": ["snapshot"]}]
    hosts = [{"host": "a", "passes": passes, "trouble": None, "reboot": ""}]
    later.write("report.json", {"taken": "2026-12-02T00:00:00Z", "seconds": 3.0, "hosts": hosts})
    RunDirectory.new("apply", datetime(2026, 12, 3, tzinfo=UTC)).write_states({"b": "done"})
    newest, oldest = history("a")
    assert (newest.command, newest.state, newest.snapshot, newest.roles) == (
        "rollback",
        "done",
        "s1",
        ("snapshot",),
    )
    assert (oldest.command, oldest.state, oldest.ended, oldest.snapshot) == (
        "upgrade",
        "partial",
        False,
        "s1",
    )
    assert history("c") == ()
