"""Answers that are damaged: no exception, and no control passes that does not pass on the whole recording."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from cases import CASES, HEALTHY, baseline, items, judged, laid_over, load, told_elsewhere

from provision.controls.model import Status

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def texts(value: Any, change: Callable[[str], str]) -> Any:
    """The answer with each text that a tool printed changed, at any depth."""
    if isinstance(value, list):
        return [texts(entry, change) for entry in value]
    if isinstance(value, dict):
        return {
            key: change(entry) if key in ("stdout", "text") else texts(entry, change)
            for key, entry in value.items()
        }
    return value


def halved(answer: dict[str, Any]) -> Any:
    """Half of each text, as after a lost connection."""
    return texts(answer, lambda text: text[: len(text) // 2])


def garbled(answer: dict[str, Any]) -> Any:
    """Another language and no structure."""
    return texts(answer, lambda _: "Befehl nicht gefunden\n\x1b[31m\ufffd\n")


def cut(answer: Any) -> Any:
    """What the collector's limit leaves of each text, marked as such."""
    if isinstance(answer, list):
        return [cut(entry) for entry in answer]
    if not isinstance(answer, dict):
        return answer
    if {"stdout", "text"} & answer.keys():
        return {**halved(answer), "cut": True}
    return {key: cut(value) for key, value in answer.items()}


DAMAGE = {
    "cut": cut,
    "halved": halved,
    "garbled": garbled,
    "denied": lambda _: {"denied": True},
    "timed-out": lambda _: {"rc": None, "timed_out": True, "seconds": 10.0},
    "failed": lambda _: {"rc": 1, "stdout": "", "stderr": "Segmentation fault"},
    "not-asked": lambda _: {"not_asked": "no time was left"},
    "left-out": lambda _: None,
}
EACH = ("halved", "garbled", "failed", "left-out")


@pytest.mark.parametrize("item", sorted(HEALTHY.items))
def test_no_damage_to_one_answer_makes_anything_better(item: str) -> None:
    for name in EACH:
        answer = DAMAGE[name](HEALTHY.items[item])
        items = {key: value for key, value in HEALTHY.items.items() if key != item}
        found = judged(replace(HEALTHY, items=items if answer is None else {**items, item: answer}))
        better = {
            control: (name, f.actual)
            for control, f in found.items()
            if f.status is Status.PASS and baseline()[control].status is not Status.PASS
        }
        assert better == {}


@pytest.mark.parametrize(
    "case", [c for c in CASES if load(c, "wanted.yml").get("lay", True)], ids=lambda c: c.name
)
def test_a_fault_does_not_go_away_with_the_answer_that_tells_of_it(case: Path) -> None:
    """Nor may another answer stand in for it that knows less."""
    whole, variables = laid_over(case), load(case, "wanted.yml").get("variables", {})
    before = judged(whole, **variables)
    told = [item for item in items(case) if item in whole.items]
    # A hanging nvidia-smi is a fault of its own, which gpu.answers tells.
    for name in ("cut",) if "nvidia-smi.query" in told else ("cut", "timed-out"):
        lost = {item: DAMAGE[name](whole.items[item]) for item in told}
        found = judged(replace(whole, items={**whole.items, **lost}), **variables)
        better = {
            control: (name, before[control].actual, f.actual)
            for control, f in found.items()
            if f.status is Status.PASS
            and before[control].status not in (Status.PASS, Status.SKIP)
            and control not in told_elsewhere(told)
        }
        assert better == {}


@pytest.mark.parametrize("name", ["denied", "timed-out", "garbled", "not-asked"])
def test_with_all_answers_damaged_nothing_passes(name: str) -> None:
    found = judged(replace(HEALTHY, items={key: DAMAGE[name](value) for key, value in HEALTHY.items.items()}))
    assert {control: f.actual for control, f in found.items() if f.status is Status.PASS} == {}
