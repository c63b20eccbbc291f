"""A plan as text: each host's roles in order, what each changes and disrupts, and what is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .lines import line

if TYPE_CHECKING:
    from rich.console import Console

    from ...plan.model import Plan, Step

DISRUPTION = {
    "nothing": "disrupts nothing",
    "service": "restarts a service",
    "containers": "stops containers",
    "reboot": "may need a reboot",
}


def plan(host: Plan, out: Console, *, diff: bool = False) -> None:
    """Print one host's plan; `diff` adds what changes inside files."""
    if host.refused:
        line(out, [(host.host, "bold"), ("  refused", "bold red")])
        for why in host.refused:
            line(out, [("  ", ""), (why, "")])
        return
    if host.empty:
        line(out, [(host.host, "bold"), ("  nothing to do", "green")])
        return
    line(out, [(host.host, "bold"), (f"  {len(host.steps)} roles", "")])
    for step in host.steps:
        _step(step, out, diff)
    for role in host.later:
        line(out, [("  then ", "dim"), (role, "bold"), (": known once the roles above are through", "dim")])


def _step(step: Step, out: Console, diff: bool) -> None:
    line(out, [("  ", ""), (step.role, "bold"), (f"  {DISRUPTION[str(step.disrupts)]}", "dim")])
    for finding in step.findings:
        line(
            out,
            [("    mends ", "dim"), (finding.control, ""), (f": {finding.actual or finding.title}", "dim")],
        )
    for change in step.changes:
        line(out, [("    ", ""), (change.what, "")])
        if diff and change.diff:
            for text in change.diff.splitlines():
                style = {"+": "green", "-": "red", "@": "cyan"}.get(text[:1], "dim")
                line(out, [("      ", ""), (text, style)])
