"""The JSON documents against their published schemas."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import jsonschema
import pytest

from provision.controls.model import Disrupts, Finding, Severity, Status
from provision.converge.result import HostResult, Outcome, State
from provision.report import documents
from provision.report.model import Audit, HostRun, Judgement, Run
from provision.verify.result import Check, CheckStatus

FINDING = Finding(
    control="ssh.password-login",
    status=Status.FAIL,
    severity=Severity.HIGH,
    required=True,
    title="No password opens a session",
    expected="refused",
    actual="accepted for root",
    evidence=("permitrootlogin yes",),
    advice="",
    role="ssh_hardening",
    disrupts=Disrupts.SERVICE,
)
RESULT = HostResult("gpu01", Outcome.DONE, State.DONE, ("nccl",), ("nccl",), None, None, "", 4, 1, 0, 0, 2.5)
CHECK = Check("gpu01", "ssh.key", "A key is accepted", CheckStatus.PASSED, "", 0.3)


def valid(document: dict[str, Any]) -> dict[str, Any]:
    schema = documents.schema(document["schema"])
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(document, schema, cls=jsonschema.Draft202012Validator)
    return json.loads(documents.dump(document))


@pytest.mark.parametrize("status", list(Status))
def test_an_audit_of_every_status_keeps_its_schema(status: Status) -> None:
    hosts = (
        Judgement("gpu01", (replace(FINDING, status=status),)),
        Judgement("gpu02", unreached="no route to host"),
    )
    drift = (
        {"group": "all", "what": "kernel", "majority": "6.8", "odd": [{"host": "gpu01", "value": "6.1"}]},
    )
    document = valid(documents.audit(Audit("research", "2026-11-30T12:00:00Z", hosts, drift)))
    assert document["hosts"][0]["counts"][status] == 1
    assert sum(document["hosts"][0]["counts"].values()) == 1
    assert document["hosts"][1]["reached"] is False
    assert document["hosts"][1]["unreached"] == "no route to host"


def test_the_schema_refuses_a_host_out_of_reach_without_a_reason() -> None:
    document = documents.audit(Audit("research", "2026-11-30T12:00:00Z", (Judgement("gpu01"),)))
    document["hosts"][0]["reached"] = False
    with pytest.raises(jsonschema.ValidationError):
        valid(document)


@pytest.mark.parametrize("state", ["untouched", "done", "reverted", "partial", "unreached"])
def test_a_run_keeps_its_schema_in_every_state(state: str) -> None:
    host = HostRun(
        "gpu01", state, ("nccl",), (RESULT,), Judgement("gpu01", (FINDING,)), (CHECK,), "why", "again"
    )
    document = valid(documents.run(Run("bootstrap", "research", "2026-11-30T12:00:00Z", 3.21, (host,))))
    assert document["hosts"][0]["state"] == state
    assert document["seconds"] == 3.2


def test_a_run_without_a_second_recording_has_a_null_judgement() -> None:
    run = Run(
        "bootstrap", "research", "2026-11-30T12:00:00Z", 3, (HostRun("gpu01", "unreached"),), interrupted=True
    )
    document = valid(documents.run(run))
    assert document["hosts"][0]["judgement"] is None
    assert document["exit_code"] == 130


def test_an_audit_without_root_rights_says_so() -> None:
    seen = Audit("research", "2026-11-30T12:00:00Z", (Judgement("gpu01", without_root="no rights"),))
    assert valid(documents.audit(seen))["hosts"][0]["without_root"] == "no rights"
