"""docs/controls.md is what the code says, of every control."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from provision.controls import all_controls

if TYPE_CHECKING:
    from types import ModuleType

TOOL = Path(__file__).parents[2] / "tools" / "controls_page.py"


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("controls_page", TOOL)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def test_the_page_is_up_to_date(tool: ModuleType) -> None:
    assert tool.PAGE.read_text(encoding="utf-8") == tool.page(), (
        "run `.venv/bin/python tools/controls_page.py`"
    )


def test_every_control_has_its_section_and_what_it_asks_for(tool: ModuleType) -> None:
    sections = {part.partition("\n")[0]: part for part in tool.page().split("\n## ")[1:]}
    for control in all_controls().values():
        section = sections[control.name]
        assert f"{control.title}." in section
        told = [line for line in section.splitlines() if line.startswith("- **")]
        # One that only tells what it sees never fails.
        assert told or control.name == "storage.free-disks", control.name
        assert not [line for line in told if line.endswith("unless: …")], control.name
