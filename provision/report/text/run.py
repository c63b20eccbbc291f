"""What a run came to: each host's state, what went wrong, what was proven, how to go on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import exits
from .audit import judgement
from .lines import LABEL, Mend, duration, labelled, line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from ...verify.result import Check
    from ..model import HostRun, Run

STATE_STYLES = {
    "done": "green",
    "untouched": "yellow",
    "reverted": "yellow",
    "partial": "bold red",
    "unreached": "bold magenta",
}


def run(report: Run, out: Console, mend: Mend) -> None:
    """Print what a run came to: each host's state, what went wrong, what was proven, how to go on."""
    hosts = sorted(report.hosts, key=lambda h: (exits.of_host_run(h) == exits.OK, h.host))
    for host in hosts:
        _host_run(host, out, mend)
    code = exits.of_run(report)
    done = sum(h.state == "done" for h in report.hosts)
    words = "interrupted" if report.interrupted else "all holds" if code == exits.OK else "not all holds"
    out.print(
        f"{done} of {len(report.hosts)} done in {duration(report.seconds)}: {words}",
        style="green" if code == exits.OK else "bold red",
    )
    if report.directory:
        out.print(f"Plan, events, recordings and this report: {report.directory}", style="dim")


def _host_run(host: HostRun, out: Console, mend: Mend) -> None:
    ran = [role for p in host.passes for role in p.roles_done]
    what = (
        f"ran {', '.join(ran)}"
        if ran
        else "nothing was planned"
        if not host.planned
        else "no role ended well"
    )
    seconds = sum(p.seconds for p in host.passes)
    took = f" in {duration(seconds)}" if seconds else ""
    line(
        out,
        [
            (host.host, "bold"),
            ("  ", ""),
            (host.state, STATE_STYLES.get(host.state, "")),
            (f"  {what}{took}", ""),
        ],
    )
    for p in host.passes:
        if p.message:
            where = " / ".join(part for part in (p.role, p.task) if part)
            labelled(out, [(str(p.outcome), where), ("says", p.message)], indent="  ", style="red")
    if host.trouble and not any(p.message and p.message in host.trouble for p in host.passes):
        labelled(out, [("why", host.trouble)], indent="  ", style="red")
    if host.reboot:
        labelled(out, [("reboot", host.reboot)], indent="  ", style="yellow")
    if host.checks:
        checks(host.checks, out)
    if (
        host.judgement and host.judgement.findings and not host.stopped
    ):  # else the findings are no result, and would bury the reason
        judgement(host.judgement, out, mend, label=(f"  {'now':<{LABEL - 2}}", "dim"))
    if host.resume:
        labelled(out, [("go on", host.resume)], indent="  ")
    out.print()


def checks(results: Sequence[Check], out: Console) -> None:
    """Print what was tried from outside: failures in full, the others a line each."""
    marks = {"passed": ("proven", "green"), "failed": ("FAILED", "bold red"), "skipped": ("not tried", "dim")}
    for check in sorted(results, key=lambda c: (not c.failed, c.status == "skipped", c.name)):
        word, style = marks[check.status]
        why = "" if check.status == "passed" or not check.message else f": {check.message}"
        first, *more = f"{check.title}{why}".splitlines()
        line(out, [("  ", ""), (f"{word:<{LABEL}}", style), (first, "")])
        for text in more:
            out.print(" " * (LABEL + 2) + text)
