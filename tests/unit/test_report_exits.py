"""Exit codes: what fails gives 1, what could not be judged 3, and 1 outranks 3."""

from __future__ import annotations

import pytest

from provision.controls.model import Disrupts, Finding, Severity, Status
from provision.report import exits
from provision.report.model import HostRun, Judgement, Run
from provision.verify.result import Check, CheckStatus


def finding(status: Status, *, required: bool = False, waived: str | None = None) -> Finding:
    return Finding(
        "gpu.answers", status, Severity.LOW, required, "t", "", "", (), "", None, Disrupts.NOTHING, (), waived
    )


@pytest.mark.parametrize(
    ("found", "code"),
    [
        ([], 0),
        ([finding(Status.PASS), finding(Status.SKIP, required=True), finding(Status.WARN, required=True)], 0),
        ([finding(Status.FAIL)], 1),
        ([finding(Status.FAIL, waived="known")], 0),
        ([finding(Status.UNKNOWN)], 0),
        ([finding(Status.UNKNOWN, required=True)], 3),
        ([finding(Status.UNKNOWN, required=True), finding(Status.FAIL)], 1),
    ],
)
def test_findings(found: list[Finding], code: int) -> None:
    assert exits.of_judgement(Judgement("h", tuple(found))) == code


def test_an_unreached_host_is_not_judged_and_a_failing_one_outranks_it() -> None:
    unreached = Judgement("a", unreached="no route")
    assert exits.of_audit([unreached, Judgement("b")]) == 3
    assert exits.of_audit([unreached, Judgement("b", (finding(Status.FAIL),))]) == 1


@pytest.mark.parametrize(
    ("codes", "code"), [([], 0), ([0, 3], 3), ([3, 1], 1), ([1, 2, 3], 1), ([0, 3, 2], 2), ([130, 2, 1], 130)]
)
def test_the_worst_of_several(codes: list[int], code: int) -> None:
    assert exits.worst(codes) == code


@pytest.mark.parametrize(
    ("host", "code"),
    [
        (HostRun("h", "done", judgement=Judgement("h")), 0),
        (HostRun("h", "done"), 3),
        (HostRun("h", "untouched", judgement=Judgement("h")), 1),
        (HostRun("h", "reverted", judgement=Judgement("h")), 1),
        (HostRun("h", "unreached", stopped=3), 3),
        (HostRun("h", "untouched", judgement=Judgement("h", (finding(Status.FAIL),)), stopped=2), 2),
        (HostRun("h", "done", judgement=Judgement("h", (finding(Status.FAIL),))), 1),
        (
            HostRun(
                "h", "done", judgement=Judgement("h"), checks=(Check("h", "a.b", "t", CheckStatus.FAILED),)
            ),
            1,
        ),
        (
            HostRun(
                "h", "done", judgement=Judgement("h"), checks=(Check("h", "a.b", "t", CheckStatus.SKIPPED),)
            ),
            0,
        ),
    ],
)
def test_a_host_after_a_run(host: HostRun, code: int) -> None:
    assert exits.of_host_run(host) == code


def test_an_interrupted_run_says_so_whatever_its_hosts_came_to() -> None:
    assert exits.of_run(Run("c", "p", "t", 1, (HostRun("h", "partial"),), interrupted=True)) == 130
