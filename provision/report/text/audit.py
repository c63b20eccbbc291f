"""An audit for a tired person: the worst first, what was wanted and found, and what to run."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from ...controls.model import Disrupts, Finding, Status
from ...facts.known import Unknown
from ..model import RANK, Audit, Judgement, worst_first
from .lines import LABEL, Mend, labelled, line

if TYPE_CHECKING:
    from rich.console import Console

STYLES = {
    Status.FAIL: "bold red",
    Status.UNKNOWN: "bold magenta",
    Status.WARN: "yellow",
    Status.SKIP: "dim",
    Status.PASS: "green",
}
SHOWN = (Status.FAIL, Status.UNKNOWN, Status.WARN)
DISRUPTION = {
    Disrupts.NOTHING: "",
    Disrupts.SERVICE: "restarts a service",
    Disrupts.CONTAINERS: "restarts containers",
    Disrupts.REBOOT: "needs a reboot",
}
MOST_EVIDENCE = 8


def audit(report: Audit, out: Console, mend: Mend) -> None:
    """Print a whole audit."""
    hosts = sorted(report.hosts, key=_host_rank)
    if len(hosts) > 1:
        for host in hosts:
            _headline(host, out)
        out.print()
    for host in hosts:
        judgement(host, out, mend)
    for drift in report.drift:
        odd = ", ".join(f"{o['host']}: {o['value']}" for o in drift["odd"])
        says = f"{drift['what']} is {drift['majority']} on most of {drift['group']}, but {odd}"
        labelled(out, [("drift", says)], indent="", style="yellow")


def judgement(host: Judgement, out: Console, mend: Mend, label: tuple[str, str] | None = None) -> None:
    """Print one host: a headline, then what is not well by subject, then a line for the rest.

    The headline begins with the host's name, or with `label` and its style.
    """
    _headline(host, out, label)
    if host.unreached is not None:
        labelled(out, [("why", host.unreached)], indent="  ")
        return
    if host.without_root:
        labelled(out, [("rights", host.without_root)], indent="  ", style=STYLES[Status.UNKNOWN])
    if isinstance(host.stack, Unknown):
        labelled(out, [("stack", f"none chosen: {host.stack.reason}")], indent="  ")
    open_ = [f for f in worst_first(host.findings) if f.status in SHOWN and not f.waived]
    for _, group in groupby(_by_subject(open_), key=_subject):
        out.print()
        for finding in group:
            _finding(finding, host.host, out, mend)
    _rest(host, out)


def _headline(host: Judgement, out: Console, label: tuple[str, str] | None = None) -> None:
    parts: list[tuple[str, str]] = [label or (host.host, "bold"), ("  ", "")]
    if host.unreached is not None:
        line(out, [*parts, ("not judged", STYLES[Status.UNKNOWN])])
        return
    counts = host.counts
    for status in sorted(Status, key=lambda s: RANK[s]):
        if counts[status]:
            parts += [(f"{counts[status]} {status}", STYLES[status]), ("  ", "")]
    if host.stack is not None and not isinstance(host.stack, Unknown) and (driver := host.stack.driver):
        parts.append((f"wanted: driver {driver.version or driver.branch} from {driver.source}", "dim"))
    line(out, parts)


def _finding(finding: Finding, host: str, out: Console, mend: Mend) -> None:
    word = str(finding.status).upper() if finding.status is not Status.WARN else "warn"
    required = ", required" if finding.status is Status.UNKNOWN and finding.required else ""
    line(
        out,
        [
            ("  ", ""),
            (f"{word:<{LABEL - 2}}", STYLES[finding.status]),
            (finding.title, "bold"),
            (f"  [{finding.control}, {finding.severity}{required}]", "dim"),
        ],
    )
    rows = [
        ("expected", finding.expected),
        ("actual" if finding.status is not Status.UNKNOWN else "because", finding.actual),
    ]
    rows += [("evidence" if n == 0 else "", text) for n, text in enumerate(_cut(finding.evidence))]
    rows.append(("advice", finding.advice))
    if finding.role and finding.status is not Status.UNKNOWN:
        notes = ", ".join(n for n in (f"role {finding.role}", DISRUPTION[finding.disrupts]) if n)
        rows.append(("run", f"{mend(host, finding.role)}   ({notes})"))
    labelled(out, [(label, text) for label, text in rows if text], indent=" " * LABEL)


def _rest(host: Judgement, out: Console) -> None:
    waived = [f for f in host.findings if f.waived]
    for finding in waived:
        labelled(out, [("waived", f"{finding.title} [{finding.control}]: {finding.waived}")], indent="  ")
    passing = [f for f in host.findings if f.status is Status.PASS]
    if passing:
        subjects = [f"{s} {len(list(g))}" for s, g in groupby(sorted(passing, key=_subject), key=_subject)]
        labelled(out, [("pass", ", ".join(subjects))], indent="  ", style="dim")
    reasons: dict[str, list[str]] = {}
    for finding in host.findings:
        if finding.status is Status.SKIP:
            reasons.setdefault(finding.actual, []).append(finding.control)
    labelled(out, [("skip", f"{', '.join(names)}: {why}") for why, names in reasons.items()], "  ", "dim")


def _subject(finding: Finding) -> str:
    return finding.control.partition(".")[0]


def _by_subject(findings: list[Finding]) -> list[Finding]:
    """Subjects together, the one with the worst finding first; the order within a subject stays."""
    first: dict[str, int] = {}
    for at, finding in enumerate(findings):
        first.setdefault(_subject(finding), at)
    return sorted(findings, key=lambda f: first[_subject(f)])


def _cut(evidence: tuple[str, ...]) -> list[str]:
    if len(evidence) <= MOST_EVIDENCE:
        return list(evidence)
    return [*evidence[:MOST_EVIDENCE], f"… and {len(evidence) - MOST_EVIDENCE} more (all in --format json)"]


def _host_rank(host: Judgement) -> tuple[int, int, str]:
    counts = host.counts
    return -counts["fail"], (host.unreached is None) - counts["unknown"], host.host
