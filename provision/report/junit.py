"""An audit as JUnit XML, for CI systems: a test suite a host, a test case a finding.

There is no standard for the format; elements and attributes are those that Jenkins and GitLab read. What
makes the command end with an error is an error here too: a finding that fails is a `failure`, a
required control that is unknown an `error`. Other unknowns are `skipped`, never passed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from ..controls.model import Status

if TYPE_CHECKING:
    from ..controls.model import Finding
    from .model import Audit, Judgement

# Characters that XML 1.0 has no way to write; the tools of a host may print any.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def audit(report: Audit) -> str:
    """The whole document, with a final newline."""
    root = ET.Element("testsuites", name=f"gpu-provision audit, profile {_clean(report.profile)}")
    for host in report.hosts:
        root.append(_suite(host, report.taken))
    for count in ("tests", "failures", "errors", "skipped"):
        root.set(count, str(sum(int(suite.get(count, "0")) for suite in root)))
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _suite(host: Judgement, taken: str) -> ET.Element:
    suite = ET.Element("testsuite", name=_clean(host.host), timestamp=taken.removesuffix("Z"))
    if host.unreached is not None:
        case = ET.SubElement(suite, "testcase", classname=_clean(host.host), name="reached")
        _outcome(case, "error", "unreached", host.unreached, "")
    for finding in host.findings:
        suite.append(_case(host.host, finding))
    suite.set("tests", str(len(suite)))
    for count, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(count, str(len(suite.findall(f"testcase/{tag}"))))
    return suite


def _case(host: str, finding: Finding) -> ET.Element:
    subject = finding.control.partition(".")[0]
    case = ET.Element("testcase", classname=f"{_clean(host)}.{subject}", name=finding.control)
    lines = [finding.title]
    lines += [
        f"{word}: {text}"
        for word, text in (
            ("expected", finding.expected),
            ("actual", finding.actual),
            *(("evidence", line) for line in finding.evidence),
            ("advice", finding.advice),
        )
        if text
    ]
    text = "\n".join(lines)
    if finding.waived:
        _outcome(case, "skipped", "", f"waived: {finding.waived}", text)
    elif finding.status is Status.FAIL:
        _outcome(case, "failure", str(finding.severity), finding.actual, text)
    elif finding.status is Status.UNKNOWN and finding.required:
        _outcome(case, "error", "unknown", finding.actual, text)
    elif finding.status in (Status.UNKNOWN, Status.SKIP):
        reason = finding.actual if finding.status is Status.SKIP else f"unknown: {finding.actual}"
        _outcome(case, "skipped", "", reason, "")
    elif finding.status is Status.WARN:
        ET.SubElement(case, "system-out").text = _clean(f"warn: {text}")
    return case


def _outcome(case: ET.Element, tag: str, kind: str, message: str, text: str) -> None:
    element = ET.SubElement(case, tag, message=_clean(message))
    if kind:
        element.set("type", kind)
    element.text = _clean(text) or None


def _clean(text: str) -> str:
    return _NOT_XML.sub("?", text)
