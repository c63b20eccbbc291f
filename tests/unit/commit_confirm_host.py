"""A host made of directories and scripts, for the tests of commit_confirm's host side."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from plugins.module_utils.commit_confirm import arming, change, state

if TYPE_CHECKING:
    from pathlib import Path

# systemctl and systemd-run as far as they matter here: they write down how they were called.
SYSTEMCTL = """#!/bin/sh
echo "systemctl $*" >>"$CALLS"
case $1 in
is-enabled) echo "${ENABLED:-enabled}" ;;
is-active) echo "${ACTIVE:-active}" ;;
start) exit "${START:-1}" ;;
esac
"""
SYSTEMD_RUN = """#!/bin/sh
echo "systemd-run $*" >>"$CALLS"
exit "${ARMING:-0}"
"""


class Host:
    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = root
        self.calls = root / "calls"
        self.calls.touch()
        self.tools = root / "bin"
        self.tools.mkdir()
        self.tool("systemctl", SYSTEMCTL)
        self.tool("systemd-run", SYSTEMD_RUN)
        monkeypatch.setenv("PATH", f"{self.tools}:{os.environ['PATH']}")
        monkeypatch.setenv("CALLS", str(self.calls))
        for directory in ("units", "systemd", "etc"):
            (root / directory).mkdir()
        (root / "boot_id").write_text("this-boot\n")
        self.places = state.Places(
            str(root / "state"), str(root / "units"), str(root / "boot_id"), str(root / "systemd")
        )
        self.etc = root / "etc"

    def tool(self, name: str, text: str) -> None:
        """Put a program first in PATH."""
        (self.tools / name).write_text(text)
        (self.tools / name).chmod(0o755)

    def request(self, **given: Any) -> arming.Request:
        whole = {
            "id": "aa", "name": "a test", "holder": "me", "seconds": 60, "files": [], "paths": [],
            "units": [], "loaded": [], "validate": [], "load": [], "reload": [], **given,
        }  # fmt: skip
        return arming.Request(whole)

    def apply(self, **given: Any) -> float:
        return change.apply(self.places, self.request(**given))

    def stage(self) -> str:
        return state.state_of(self.places, "aa")

    def revert(self, *words: str) -> int:
        return subprocess.run(["sh", str(self.places.script), *words], check=False).returncode

    def tree(self) -> dict[str, tuple[int, bytes]]:
        """Everything below etc: mode and content by path."""
        return {
            str(p.relative_to(self.etc)): (p.stat().st_mode, p.read_bytes() if p.is_file() else b"")
            for p in sorted(self.etc.rglob("*"))
        }


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    return Host(tmp_path, monkeypatch)


def file(path: Path, text: str | None, mode: str | None = None) -> dict[str, Any]:
    return {"path": str(path), "text": text, "mode": mode}
