"""Saved plans: run as they were agreed to, and refused in words where the host or the profile has moved."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from provision.controls.model import Disrupts, Finding, Judged, Severity, Status
from provision.facts import Facts
from provision.facts.known import Unknown
from provision.plan.asked import Asked
from provision.plan.model import Change, Plan, Step
from provision.plan.saved import NoPlan, document, read
from provision.profile.model import Profile
from provision.recording.model import Recording
from provision.runs import planning
from provision.runs.host import Traveller
from provision.runs.look import Look

if TYPE_CHECKING:
    from provision.plan.saved import SavedPlan

DRIVER = Step(
    "nvidia_driver", (), (Change("move nvidia-smi from 570.1-1 to 580.1-1"), Change("write /etc/x", "+a"))
)
NCCL = Step("nccl", (), (Change("write /etc/nccl.conf", "+b"),))
VARIABLES = {"nvidia_driver_branch": 580}


def saved(plan: Plan) -> SavedPlan:
    return read(json.dumps(document("2026-12-01T00:00:00Z", [(plan, VARIABLES)])))[plan.host]


def test_the_same_plan_is_run_and_an_empty_one_has_nothing_to_refuse() -> None:
    kept = saved(Plan("h", (DRIVER, NCCL)))
    assert kept.moved(Plan("h", (DRIVER, NCCL)), begun=False) == ""
    assert kept.moved(Plan("h"), begun=False) == ""


@pytest.mark.parametrize(
    ("now", "says"),
    [
        ((DRIVER,), "no more: nccl: runs"),
        ((DRIVER, NCCL, Step("firewall", ())), "now also: firewall: runs"),
        (
            (replace(DRIVER, changes=(Change("move nvidia-smi from 575.1-1 to 580.1-1"),)), NCCL),
            "from 575.1-1",
        ),
        (
            (DRIVER, replace(NCCL, changes=(Change("write /etc/nccl.conf", "+c"),))),
            "other contents: nccl: write",
        ),
    ],
)
def test_what_has_moved_is_named(now: tuple[Step, ...], says: str) -> None:
    assert says in saved(Plan("h", (DRIVER, NCCL))).moved(Plan("h", now), begun=False)


def test_what_an_earlier_run_did_is_no_difference_to_one_that_goes_on() -> None:
    kept = saved(Plan("h", (DRIVER, NCCL)))
    assert kept.moved(Plan("h", (NCCL,)), begun=True) == ""
    assert "firewall" in kept.moved(Plan("h", (NCCL, Step("firewall", ()))), begun=True)


def test_whom_the_packages_wait_for_is_no_part_of_the_plan() -> None:
    waits = replace(NCCL, changes=(*NCCL.changes, Change("wait for process 7", passing=True)))
    assert saved(Plan("h", (NCCL,))).moved(Plan("h", (waits,)), begun=False) == ""


def test_a_later_pass_runs_what_was_announced() -> None:
    kept = saved(Plan("h", (DRIVER,), later=("gpu_settings",)))
    assert kept.beyond(Plan("h", (Step("gpu_settings", ()),))) == ()
    assert kept.beyond(Plan("h", (NCCL,))) == ("nccl",)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"schema": "gpu-provision/plan/1"}',
        '{"schema": "gpu-provision/plan/1", "hosts": [{}]}',
    ],
)
def test_what_is_no_saved_plan(text: str) -> None:
    with pytest.raises(NoPlan):
        read(text)


def traveller(
    asked: Asked, findings: tuple[Finding, ...], variables: dict[str, int] = VARIABLES
) -> Traveller:
    judged = Judged(
        Facts(Recording("h", "", True, 0.1, {})), Profile("p", variables), Unknown("not resolved")
    )
    return Traveller("h", "", asked, look=Look(judged.facts.recording, judged, findings))


def finding(control: str, role: str, status: Status = Status.FAIL) -> Finding:
    return Finding(control, status, Severity.LOW, False, "", "", "", (), "", role, Disrupts.NOTHING)


@pytest.fixture
def snapshots() -> list[str]:
    """What there is to do for a snapshot."""
    return []


@pytest.fixture(autouse=True)
def no_planners(monkeypatch: pytest.MonkeyPatch, snapshots: list[str]) -> None:
    from provision.plan import make
    from provision.planners.wanted import Wanted

    monkeypatch.setattr(planning, "wanted_for", lambda *_: Wanted(steps=tuple(snapshots)))

    monkeypatch.setattr(
        make,
        "wanted_for",
        lambda role, *_: Wanted(refused="no docker" if role == "container_toolkit" else None),
    )


def test_another_profile_is_another_plan() -> None:
    kept = saved(Plan("h", (Step("nccl", (finding("nccl.ib", "nccl"),)),)))
    same = traveller(Asked(saved=kept), (finding("nccl.ib", "nccl"),))
    planning.make_plan(same)
    assert same.failure is None
    other = traveller(Asked(saved=kept), (finding("nccl.ib", "nccl"),), {"nvidia_driver_branch": 595})
    planning.make_plan(other)
    assert other.failure is not None
    assert "the profile is another one" in other.failure.says


def test_only_some_roles_leave_the_unknowns_of_others_alone() -> None:
    here = traveller(
        Asked(only=("nccl",)),
        (finding("a.a", "nccl"), finding("b.b", "firewall", Status.UNKNOWN), finding("c.c", "limits")),
    )
    planning.make_plan(here)
    assert here.plan is not None
    assert here.plan.roles == ("nccl",)
    assert here.failure is None
    judged = here.finished().judgement
    assert judged is not None
    assert [f.control for f in judged.findings] == ["a.a"]


def test_all_roles_run_once_but_for_those_that_refuse_unasked() -> None:
    here = traveller(Asked(every=True), (finding("a.a", "nccl"),))
    planning.make_plan(here)
    assert here.plan is not None
    assert set(planning.role_order()) - set(here.plan.roles) == {"container_toolkit", "snapshot"}


def test_a_snapshot_comes_before_any_change_and_only_then(snapshots: list[str]) -> None:
    snapshots.append("keep the way back: the first snapshot")
    changing = traveller(Asked(only=("nccl",)), (finding("a.a", "nccl"),))
    planning.make_plan(changing)
    assert changing.plan is not None
    assert changing.plan.roles == ("snapshot", "nccl")
    assert [c.what for c in changing.plan.steps[0].changes] == snapshots
    content = traveller(Asked(), (finding("a.a", "nccl", Status.PASS),))
    planning.make_plan(content)
    assert content.plan is not None
    assert content.plan.empty
