"""The cases of tests/recordings/cases, and the complete healthy recording that they are laid over."""

from __future__ import annotations

from datetime import date
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from provision.profile.compose import compose
from provision.recording.model import Recording
from provision.runs.look import judge

if TYPE_CHECKING:
    from provision.controls.model import Finding

RECORDINGS = Path(__file__).parent.parent / "recordings"
CASES = sorted(path.parent for path in (RECORDINGS / "cases").glob("*/wanted.yml"))
HEALTHY = Recording.from_json((RECORDINGS / "healthy" / "debian12-a100.json").read_text(encoding="utf-8"))
TODAY = date(2026, 11, 30)
# What the healthy host was converged with.
VARIABLES: dict[str, Any] = {"nvidia_driver_source": "debian", "gpu_settings_clocks": "max"}


def judged(recording: Recording, **variables: Any) -> dict[str, Finding]:
    """Findings by control."""
    profile = compose("test", {}, {}, {**VARIABLES, **variables})
    return {found.control: found for found in judge(recording, profile, TODAY).findings}


@cache
def baseline() -> dict[str, Finding]:
    return judged(HEALTHY)


def load(case: Path, name: str) -> dict[str, Any]:
    text = (case / name).read_text(encoding="utf-8")
    return dict(yaml.safe_load(text))


def alone(case: Path) -> Recording:
    """The case's own items and nothing else."""
    items = load(case, "items.yml")
    return Recording("gpu01", "2026-11-30T12:00:00Z", True, 0.4, items)


def laid_over(case: Path) -> Recording:
    """The healthy host with the case's items in place of its own."""
    items = {**HEALTHY.items, **load(case, "items.yml"), **load(case, "wanted.yml").get("with", {})}
    return Recording("gpu01", HEALTHY.taken, True, 0.4, items)
