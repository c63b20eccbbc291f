"""Plans follow from findings alone: which roles, in which pass, and what refuses the whole."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from provision.catalog.stack import Stack
from provision.controls.model import Disrupts, Finding, Judged, Severity, Status
from provision.facts import Facts
from provision.plan import make as module
from provision.plan.make import make
from provision.planners.wanted import File, FirstLine, Wanted
from provision.profile.model import Profile
from provision.recording.model import Recording

ORDER = ("first", "second", "third")


@pytest.fixture(autouse=True)
def planners(monkeypatch: pytest.MonkeyPatch) -> dict[str, Wanted]:
    """Roles without planners of their own, so that only the findings decide."""
    answers: dict[str, Wanted] = {}
    monkeypatch.setattr(module, "wanted_for", lambda role, *_: answers.get(role, Wanted()))
    return answers


def finding(control: str, status: Status, role: str | None, **more: Any) -> Finding:
    plain = Finding(
        control=control,
        status=status,
        severity=Severity.MEDIUM,
        required=False,
        title=control,
        expected="",
        actual="",
        evidence=(),
        advice="",
        role=role,
        disrupts=Disrupts.NOTHING,
    )
    return replace(plain, **more)


def judged(**items: Any) -> Judged:
    recording = Recording("h", "2026-01-01T00:00:00Z", True, 0.1, items)
    return Judged(Facts(recording), Profile("p", {}), Stack(satisfiable=True))


def test_nothing_wrong_is_an_empty_plan() -> None:
    plan = make(
        "h", judged(), [finding("a.a", Status.PASS, "first"), finding("a.b", Status.SKIP, "second")], ORDER
    )
    assert plan.empty
    assert plan.roles == ()


def test_roles_run_in_the_one_order_and_once() -> None:
    found = [
        finding("c.c", Status.FAIL, "third"),
        finding("a.a", Status.WARN, "first", disrupts=Disrupts.REBOOT),
        finding("a.b", Status.FAIL, "first"),
    ]
    plan = make("h", judged(), found, ORDER)
    assert plan.roles == ("first", "third")
    assert plan.steps[0].disrupts is Disrupts.REBOOT


def test_what_no_role_mends_plans_nothing() -> None:
    assert make("h", judged(), [finding("a.a", Status.FAIL, None)], ORDER).empty


def test_a_waived_finding_plans_nothing() -> None:
    assert make("h", judged(), [finding("a.a", Status.FAIL, "first", waived="known")], ORDER).empty


def test_an_unknown_that_waits_for_a_mended_control_is_a_later_pass() -> None:
    found = [
        finding("a.a", Status.FAIL, "first"),
        finding("a.between", Status.FAIL, None, needs=("a.a",)),
        finding("b.b", Status.UNKNOWN, "second", needs=("a.between",)),
        finding("c.c", Status.UNKNOWN, "third", needs=("b.b",)),
    ]
    plan = make("h", judged(), found, ORDER)
    assert plan.roles == ("first",)
    assert plan.later == ("second", "third")
    assert not plan.refused


def test_any_other_unknown_of_a_role_refuses_the_plan() -> None:
    found = [
        finding("a.a", Status.FAIL, "first"),
        finding("b.b", Status.UNKNOWN, "second", actual="no right to read it", needs=("x.passes",)),
        finding("x.passes", Status.PASS, None),
    ]
    plan = make("h", judged(), found, ORDER)
    assert plan.steps == ()
    assert plan.refused == ("b.b is unknown: no right to read it",)


def test_what_keeps_several_controls_from_an_answer_is_said_once() -> None:
    found = [
        finding("a.a", Status.UNKNOWN, "first", actual="a file is broken"),
        finding("b.b", Status.UNKNOWN, "second", actual="no right to read it"),
        finding("c.c", Status.UNKNOWN, "first", actual="a file is broken"),
    ]
    assert make("h", judged(), found, ORDER).refused == (
        "a.a, c.c are unknown: a file is broken",
        "b.b is unknown: no right to read it",
    )


def test_an_unknown_that_no_role_mends_refuses_nothing() -> None:
    assert make("h", judged(), [finding("a.a", Status.UNKNOWN, None)], ORDER).empty


def test_a_planner_that_refuses_refuses_the_whole(planners: dict[str, Wanted]) -> None:
    planners["second"] = Wanted(refused="another driver is there")
    found = [finding("a.a", Status.FAIL, "first"), finding("b.b", Status.FAIL, "second")]
    plan = make("h", judged(), found, ORDER)
    assert plan.roles == ()
    assert plan.refused == ("second: another driver is there",)


def test_a_plan_shows_what_changes_in_files(planners: dict[str, Wanted]) -> None:
    planners["first"] = Wanted(
        files=(
            File("/etc/new", "a\n"),
            File("/etc/old", "b\n"),
            File("/etc/gone", None),
            File("/etc/same", "c\n"),
            File("/etc/never", None),
        )
    )
    host = judged(
        **{
            "file:/etc/new": {"missing": True},
            "file:/etc/old": {"text": "x\n"},
            "file:/etc/gone": {"text": "y\n"},
            "file:/etc/same": {"text": "c\n"},
            "file:/etc/never": {"missing": True},
        }
    )
    changes = make("h", host, [finding("a.a", Status.FAIL, "first")], ORDER).steps[0].changes
    assert [c.what for c in changes] == ["write /etc/new", "change /etc/old", "remove /etc/gone"]
    assert "-x" in changes[1].diff
    assert "+b" in changes[1].diff


def test_a_plan_shows_a_line_that_goes_on_top_of_a_foreign_file(planners: dict[str, Wanted]) -> None:
    planners["first"] = Wanted(first_lines=(FirstLine("/etc/x", "Include /y"),))
    changes = make("h", judged(), [finding("a.a", Status.FAIL, "first")], ORDER).steps[0].changes
    assert [c.what for c in changes] == ["put `Include /y` on top of /etc/x"]


def test_a_plan_names_who_has_to_end_before_packages_come(planners: dict[str, Wanted]) -> None:
    locks = {"rc": 0, "stdout": '[{"path": "/var/lib/dpkg/lock-frontend", "pid": 7, "program": "apt"}]'}
    host = judged(**{"apt.locks": locks})
    planners["first"] = Wanted(packages=("x",))
    planners["second"] = Wanted()
    failing = [finding("a.a", Status.FAIL, "first"), finding("a.b", Status.FAIL, "second")]
    first, second = make("h", host, failing, ORDER).steps
    wait = "wait for process 7 (apt), which holds /var/lib/dpkg/lock-frontend now"
    assert [c.what for c in first.changes] == [wait, "install x"]
    assert second.changes == ()
