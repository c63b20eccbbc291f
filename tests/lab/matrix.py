"""The table of what the large SSH matrices showed; written by `make ssh-matrix`, and never by hand."""

from __future__ import annotations

import json
import subprocess
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

KEY = "matrix"
TREE = Path(__file__).parents[2]
KEPT = TREE / ".cache/ssh-matrix.json"
HEAD = """\
# What the SSH matrices showed

Written by `make ssh-matrix`, a part of `make full`; never by hand. Each line is one lab host in one
situation, as `test_ssh_shapes.py` and `test_lockout_faults.py` bring it about. A host is *lost* where it is
not proven that its administrator gets in on a fresh connection by plain OpenSSH.
"""
COLUMNS = {
    "shapes": ("shape", "release", "state", "gets in", "password refused", "as before", "second run"),
    "faults": ("change", "release", "fault", "at", "state", "gets in", "as before", "told"),
}
TITLES = {
    "shapes": "## Shapes that sshd is found in, under ssh_hardening",
    "faults": "## Faults",
}


@dataclass(frozen=True)
class Run:
    """One run of pytest over the matrices, or over what an earlier one left."""

    when: str
    commit: str
    minutes: int
    rows: dict[str, dict[str, str]]

    @property
    def passed(self) -> set[str]:
        return {nodeid for nodeid, row in self.rows.items() if row["outcome"] == "passed"}


def kept() -> list[Run]:
    """The runs whose rows the table has now: a first, and those that made up for what it left."""
    return [Run(**run) for run in json.loads(KEPT.read_text(encoding="utf-8"))] if KEPT.exists() else []


def missing(items: list[pytest.Item]) -> list[pytest.Item]:
    """The tests of situations that no kept run has shown to go well."""
    passed = {nodeid for run in kept() for nodeid in run.passed}
    return [item for item in items if item.nodeid not in passed]


class Matrix:
    """Collects the rows that tests fill in, from all workers, and writes the table at the end.

    With `more` they make up for what is missing in the table of the runs before, and those stay in it.
    """

    def __init__(self, path: Path, *, more: bool = False) -> None:
        self.path = path
        self.begun = time.monotonic()
        self.before = kept() if more else []
        self.rows: dict[str, dict[str, str]] = {}
        self.meant = {nodeid for run in self.before for nodeid in run.passed}

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.meant |= {item.nodeid for item in session.items}

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: object, ids: list[str]) -> None:
        """The same where workers collect and this process does not."""
        self.meant |= set(ids)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for name, row in report.user_properties:
            if name == KEY:
                shown = self.rows.setdefault(report.nodeid, {})
                shown.update(row if isinstance(row, dict) else {})
                shown["outcome"] = "failed" if report.failed else shown.get("outcome", "passed")

    def pytest_sessionfinish(self) -> None:
        if not self.rows:
            return
        minutes = round((time.monotonic() - self.begun) / 60)
        when = f"{datetime.now(UTC):%-d %B %Y, %H:%M} UTC"
        runs = [*self.before, Run(when, commit(), minutes, self.rows)]
        KEPT.parent.mkdir(parents=True, exist_ok=True)
        KEPT.write_text(json.dumps([asdict(run) for run in runs], indent=1), encoding="utf-8")
        self.path.write_text(text(runs, len(self.meant)), encoding="utf-8")


def text(runs: list[Run], meant: int) -> str:
    """The whole document. A row whose test failed, or did not come far enough, says so in its state; of how
    many situations there are rows, where a run broke off, stands in the first lines.
    """
    rows: dict[str, dict[str, str]] = {}
    for run in runs:
        rows |= {
            nodeid: row for nodeid, row in run.rows.items() if nodeid not in rows or _failed(rows[nodeid])
        }
    lost = sum(row.get("gets in") != "yes" for row in rows.values())
    failed = sum(_failed(row) for row in rows.values())
    parts = [HEAD, f"{len(rows)} of {meant} situations, {lost} hosts lost, {failed} tests failed:\n"]
    parts += [
        f"- Run of {run.when}, at commit {run.commit}, {run.minutes} minutes: "
        f"{len(run.rows)} situations, {len(run.rows) - len(run.passed)} of their tests failed."
        for run in runs
    ]
    for table, columns in COLUMNS.items():
        lines = [row for _, row in sorted(rows.items()) if row.get("table") == table]
        if not lines:
            continue
        parts += [
            f"\n{TITLES[table]}\n",
            f"| {' | '.join(columns)} |",
            f"| {' | '.join(['---'] * len(columns))} |",
        ]
        parts += [f"| {' | '.join(_cells(row, columns))} |" for row in lines]
    unnamed = [nodeid for nodeid, row in rows.items() if "table" not in row]
    parts += [f"\nDid not begin: {nodeid}" for nodeid in unnamed]
    return "\n".join(parts) + "\n"


def _failed(row: dict[str, str]) -> bool:
    return row["outcome"] != "passed"


def _cells(row: dict[str, str], columns: tuple[str, ...]) -> list[str]:
    shown = dict(row)
    if _failed(row):
        shown["state"] = f"**test failed** ({row.get('state', 'not known')})"
    return [shown.get(column, "-") for column in columns]


def commit() -> str:
    """The commit at hand; with a word where the tree differs from it."""

    def git(*words: str) -> str:
        return subprocess.run(["git", "-C", str(TREE), *words], capture_output=True, text=True).stdout.strip()

    changed = git("status", "--porcelain", "--untracked-files=no", "--", ":!docs")
    return (git("rev-parse", "--short=10", "HEAD") or "unknown") + (" with changes" if changed else "")


def row_of(record_property: Any) -> dict[str, str]:
    """A row for one test to fill in; what it holds when the test ends is what the table shows."""
    row: dict[str, str] = {}
    record_property(KEY, row)
    return row
