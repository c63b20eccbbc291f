"""JUnit XML: what makes the command fail makes a CI system fail, and any text of a host stays well-formed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest
from cases import HEALTHY, RECORDINGS, judged, laid_over
from click.testing import CliRunner
from test_report_documents import FINDING

from provision.cli.main import cli
from provision.controls.model import Finding, Status
from provision.report import exits, junit
from provision.report.model import Audit, Judgement

if TYPE_CHECKING:
    from pathlib import Path


def suite(*findings: Finding, unreached: str | None = None) -> ET.Element:
    host = Judgement("gpu01", findings, unreached=unreached)
    root = ET.fromstring(junit.audit(Audit("research", "2026-11-30T12:00:00Z", (host,))))
    found = root.find("testsuite")
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("changed", "tag"),
    [
        ({"status": Status.PASS}, None),
        ({"status": Status.WARN}, "system-out"),
        ({"status": Status.FAIL}, "failure"),
        ({"status": Status.UNKNOWN, "required": True}, "error"),
        ({"status": Status.UNKNOWN, "required": False}, "skipped"),
        ({"status": Status.SKIP}, "skipped"),
        ({"status": Status.FAIL, "waived": "until the new rack"}, "skipped"),
    ],
)
def test_each_status_has_its_element(changed: dict[str, object], tag: str | None) -> None:
    finding = replace(FINDING, **changed)  # type: ignore[arg-type]
    made = suite(finding)
    case = made.find("testcase")
    assert case is not None
    assert [child.tag for child in case] == ([tag] if tag else [])
    assert (case.get("classname"), case.get("name")) == ("gpu01.ssh", "ssh.password-login")
    breaks = int(made.get("failures", "")) + int(made.get("errors", ""))
    assert bool(breaks) == bool(exits.of_judgement(Judgement("gpu01", (finding,))))


def test_a_failure_says_what_and_why() -> None:
    failure = suite(replace(FINDING, status=Status.FAIL, advice="close it")).find("testcase/failure")
    assert failure is not None
    assert failure.get("message") == "accepted for root"
    assert failure.get("type") == "high"
    for words in (FINDING.title, "expected: refused", "evidence: permitrootlogin yes", "advice: close it"):
        assert words in (failure.text or "")


def test_a_host_out_of_reach_is_an_error() -> None:
    made = suite(unreached="no route to host")
    assert made.get("errors") == "1"
    error = made.find("testcase/error")
    assert error is not None
    assert error.get("message") == "no route to host"


@pytest.mark.parametrize("text", ["a\x1b[4mb\x00", '<&">', "\ud800", "Größe ✓ \U0001f600"])
def test_whatever_a_host_prints_stays_xml(text: str) -> None:
    made = suite(replace(FINDING, status=Status.FAIL, actual=text, evidence=(text,)))
    failure = made.find("testcase/failure")
    assert failure is not None
    assert "\x1b" not in (failure.get("message") or "")


def test_the_command_writes_it(tmp_path: Path) -> None:
    out = tmp_path / "report.xml"
    recording = RECORDINGS / "healthy" / "debian12-a100.json"
    given = [
        "audit",
        "--recording",
        str(recording),
        "--set",
        "nvidia_driver_source=debian",
        "--set",
        "gpu_settings_clocks=max",
    ]
    result = CliRunner().invoke(cli, [*given, "--format", "junit", "--out", str(out)], standalone_mode=False)
    assert result.return_value == 0, result.output
    root = ET.parse(out).getroot()
    assert root.tag == "testsuites"
    assert int(root.get("tests", "")) > 60
    assert root.get("failures") == root.get("errors") == "0"
    names = {case.get("name") for case in root.iter("testcase")}
    assert {"gpu.health", "gpu.xid", "topology.nvlink"} <= names


# What the readers know: the elements with their attributes, in the order in which a test case may have them
# (Jenkins' xunit plug-in, jenkins-junit.xsd; GitLab reads a part of it).
TREE = {
    "testsuites": ({"name", "tests", "failures", "errors", "skipped"}, {"testsuite"}),
    "testsuite": ({"name", "tests", "failures", "errors", "skipped", "timestamp"}, {"testcase"}),
    "testcase": ({"classname", "name"}, {"skipped", "error", "failure", "system-out"}),
    "skipped": ({"message"}, set()),
    "error": ({"message", "type"}, set()),
    "failure": ({"message", "type"}, set()),
    "system-out": (set(), set()),
}


@pytest.mark.parametrize("name", ["healthy", "C14-fallen-off-the-bus", "C40-cloud-init-wins", "nothing"])
def test_the_document_of_a_whole_audit_is_what_its_readers_know(name: str, tmp_path: Path) -> None:
    recording = {
        "healthy": HEALTHY,
        "nothing": replace(HEALTHY, items={}),
    }.get(name) or laid_over(RECORDINGS / "cases" / name)
    found = judged(recording)
    root = ET.fromstring(
        junit.audit(
            Audit(
                "x",
                "2026-11-30T12:00:00Z",
                (Judgement("gpu01", tuple(found.values())), Judgement("gpu02", unreached="no route")),
            )
        )
    )
    for element in root.iter():
        attributes, children = TREE[element.tag]
        assert set(element.attrib) == attributes
        assert {child.tag for child in element} <= children
    for suite_ in root.findall("testsuite"):
        cases = suite_.findall("testcase")
        assert all(len(case) <= 1 for case in cases)
        assert int(suite_.get("tests", "")) == len(cases)
        assert len({(c.get("classname"), c.get("name")) for c in cases}) == len(cases)
        for count, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert int(suite_.get(count, "")) == len(suite_.findall(f"testcase/{tag}"))
    assert len(root.findall("testsuite")[0]) == len(found)
    for count in ("tests", "failures", "errors", "skipped"):
        assert int(root.get(count, "")) == sum(int(s.get(count, "")) for s in root.findall("testsuite"))
