"""What a person reads after an audit or a run."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest

from provision.controls.model import Disrupts, Finding, Severity, Status
from provision.converge.result import HostResult, Outcome, State
from provision.facts.known import Unknown
from provision.report import text
from provision.report.model import Audit, HostRun, Judgement, Run
from provision.verify.result import Check, CheckStatus

FAIL = Finding(
    control="driver.loaded-matches-installed",
    status=Status.FAIL,
    severity=Severity.HIGH,
    required=True,
    title="The loaded driver is the installed one",
    expected="580.95.05",
    actual="580.65.06 loaded",
    evidence=("/sys/module/nvidia/version: 580.65.06",),
    advice="Drain the host first.",
    role="nvidia_driver",
    disrupts=Disrupts.REBOOT,
)
PASS = replace(FAIL, control="ssh.port", status=Status.PASS, title="sshd listens", role=None)
WARN = replace(FAIL, control="gpu.clocks", status=Status.WARN, title="Clocks", severity=Severity.LOW)
UNKNOWN = replace(FAIL, control="gpu.answers", status=Status.UNKNOWN, title="GPUs answer", actual="timed out")
SKIP = replace(FAIL, control="fabric.state", status=Status.SKIP, title="Fabric", actual="no NVSwitch here")


def mend(host: str, role: str) -> str:
    return f"mend {host} {role}"


def printed(*hosts: Judgement) -> str:
    out = io.StringIO()
    text.audit(Audit("research", "2026-11-30T12:00:00Z", hosts), text.console(out), mend)
    return out.getvalue()


def test_a_failing_finding_says_what_was_wanted_found_and_what_to_run() -> None:
    shown = printed(Judgement("gpu01", (PASS, FAIL)))
    assert shown.splitlines()[0] == "gpu01  1 fail  1 pass  "
    body = [" ".join(line.split()) for line in shown.splitlines()]
    assert "FAIL The loaded driver is the installed one [driver.loaded-matches-installed, high]" in body
    for wanted in (
        "expected 580.95.05",
        "actual 580.65.06 loaded",
        "evidence /sys/module/nvidia/version: 580.65.06",
        "advice Drain the host first.",
        "run mend gpu01 nvidia_driver (role nvidia_driver, needs a reboot)",
        "pass ssh 1",
    ):
        assert wanted in body


def test_the_worst_comes_first_and_a_subject_stays_together() -> None:
    late = replace(WARN, control="driver.pinned", title="Pinned")
    shown = printed(Judgement("gpu01", (WARN, PASS, UNKNOWN, SKIP, late, FAIL)))
    order = [shown.index(f"[{f.control},") for f in (FAIL, late, UNKNOWN, WARN)]
    assert order == sorted(order)
    assert "fabric.state: no NVSwitch here" in shown


def test_an_unknown_gives_its_reason_and_says_that_it_is_required() -> None:
    shown = printed(Judgement("gpu01", (UNKNOWN,)))
    assert "[gpu.answers, high, required]" in shown
    assert "because   timed out" in shown


def test_hosts_with_failures_come_before_healthy_ones() -> None:
    shown = printed(Judgement("a", (PASS,)), Judgement("b", (FAIL,)), Judgement("c", unreached="no route"))
    heads = [line.split()[0] for line in shown.splitlines()[:3]]
    assert heads == ["b", "c", "a"]
    assert "no route" in shown


def test_a_waived_finding_is_named_with_its_reason_and_not_among_the_failures() -> None:
    shown = printed(Judgement("gpu01", (replace(FAIL, waived="until the next window"),)))
    assert "until the next window" in shown
    assert "FAIL" not in shown


def test_an_unknown_stack_says_why() -> None:
    assert "no GPU seen" in printed(Judgement("gpu01", (PASS,), stack=Unknown("no GPU seen")))


def test_escape_sequences_of_a_host_do_not_reach_the_terminal() -> None:
    shown = printed(Judgement("gpu01", (replace(FAIL, actual="\x1b]0;owned\x07 red"),)))
    assert "\x1b" not in shown
    assert "\x07" not in shown


def test_markup_in_a_hosts_words_is_printed_as_it_is() -> None:
    assert "[bold]x[/bold] :smile:" in printed(
        Judgement("gpu01", (replace(FAIL, actual="[bold]x[/bold] :smile:"),))
    )


def test_no_colour_and_no_broken_line_without_a_terminal() -> None:
    long = "word " * 80
    shown = printed(Judgement("gpu01", (replace(FAIL, actual=long.strip()),)))
    assert long.strip() in shown
    assert "\x1b[" not in shown


def test_long_evidence_is_cut_and_says_how_much_is_missing() -> None:
    shown = printed(Judgement("gpu01", (replace(FAIL, evidence=tuple(f"line {n}" for n in range(20))),)))
    assert "line 7" in shown
    assert "line 8" not in shown
    assert "12 more" in shown


RESULT = HostResult(
    host="gpu01",
    outcome=Outcome.FAILED,
    state=State.PARTIAL,
    roles=("nvidia_driver", "nccl"),
    roles_done=(),
    role="nvidia_driver",
    task="Install the driver",
    message="E: Could not get lock\nheld by apt (pid 77)",
    ok=3,
    changed=1,
    skipped=0,
    failed=1,
    seconds=75.0,
)


def printed_run(*hosts: HostRun, interrupted: bool = False) -> str:
    out = io.StringIO()
    text.run(
        Run("bootstrap", "research", "2026-11-30T12:00:00Z", 90.0, hosts, interrupted, "/runs/1"),
        text.console(out),
        mend,
    )
    return out.getvalue()


def test_a_failed_run_names_state_step_message_and_the_way_on() -> None:
    shown = printed_run(
        HostRun(
            "gpu01",
            "partial",
            ("nvidia_driver",),
            (RESULT,),
            trouble=f"nvidia_driver: {RESULT.message}",
            resume="gpu-provision bootstrap gpu01 --resume",
        )
    )
    assert "gpu01  partial" in shown
    assert "nvidia_driver / Install the driver" in shown
    assert shown.count("held by apt (pid 77)") == 1
    assert "gpu-provision bootstrap gpu01 --resume" in shown
    assert "0 of 1 done in 1 min 30 s: not all holds" in shown


def test_a_good_run_says_so_and_lists_what_was_proven() -> None:
    good = replace(RESULT, outcome=Outcome.DONE, state=State.DONE, roles_done=RESULT.roles, message="")
    check = Check("gpu01", "ssh.key", "A key is accepted on a new connection", CheckStatus.PASSED)
    shown = printed_run(
        HostRun("gpu01", "done", RESULT.roles, (good,), Judgement("gpu01", (PASS,)), (check,))
    )
    assert "gpu01  done  ran nvidia_driver, nccl in 1 min 15 s" in shown
    assert "proven    A key is accepted on a new connection" in shown
    assert "1 of 1 done in 1 min 30 s: all holds" in shown


@pytest.mark.parametrize(
    ("status", "word"), [(CheckStatus.FAILED, "FAILED"), (CheckStatus.SKIPPED, "not tried")]
)
def test_a_check_that_did_not_pass_gives_its_message(status: CheckStatus, word: str) -> None:
    check = Check("gpu01", "ssh.key", "A key is accepted", status, "Permission denied")
    shown = printed_run(HostRun("gpu01", "done", checks=(check,), judgement=Judgement("gpu01", (PASS,))))
    assert f"{word:<10}A key is accepted: Permission denied" in shown


def test_a_login_without_root_rights_is_told_of_once_with_what_helps() -> None:
    shown = printed(
        Judgement("gpu01", (UNKNOWN,), without_root="ada has no root rights there\ngive a password")
    )
    assert [" ".join(line.split()) for line in shown.splitlines()[1:3]] == [
        "rights ada has no root rights there",
        "give a password",
    ]
    assert "rights" not in printed(Judgement("gpu01", (UNKNOWN,)))
