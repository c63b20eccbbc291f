"""The table of what the large SSH matrices showed; written by `make ssh-matrix`, and never by hand."""

from __future__ import annotations

import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

KEY = "matrix"
TREE = Path(__file__).parents[2]
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


class Matrix:
    """Collects the rows that tests fill in, from all workers, and writes the table at the end."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.begun = time.monotonic()
        self.rows: dict[str, dict[str, str]] = {}
        self.meant: set[str] = set()

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.meant |= {item.nodeid for item in session.items}

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: object, ids: list[str]) -> None:
        """The same where workers collect and this process does not."""
        self.meant |= set(ids)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for name, row in report.user_properties:
            if name == KEY:
                kept = self.rows.setdefault(report.nodeid, {})
                kept.update(row if isinstance(row, dict) else {})
                kept["outcome"] = "failed" if report.failed else kept.get("outcome", "passed")

    def pytest_sessionfinish(self) -> None:
        if not self.rows:
            return
        seconds = time.monotonic() - self.begun
        shown = text(self.rows, len(self.meant), datetime.now(UTC), commit(), seconds)
        self.path.write_text(shown, encoding="utf-8")


def text(rows: dict[str, dict[str, str]], meant: int, when: datetime, at: str, seconds: float) -> str:
    """The whole document. A row whose test failed, or did not come far enough, says so in its state; of how
    many situations there are rows, where a run broke off, stands in the first lines.
    """
    lost = sum(row.get("gets in") != "yes" for row in rows.values())
    failed = sum(row["outcome"] != "passed" for row in rows.values())
    parts = [
        HEAD,
        f"Run of {when:%-d %B %Y}, {when:%H:%M} UTC, at commit {at}, in {seconds / 60:.0f} minutes: "
        f"{len(rows)} of {meant} situations, {lost} hosts lost, {failed} tests failed.\n",
    ]
    for table, columns in COLUMNS.items():
        lines = [row for row in rows.values() if row.get("table") == table]
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


def _cells(row: dict[str, str], columns: tuple[str, ...]) -> list[str]:
    shown = dict(row)
    if row["outcome"] != "passed":
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
