"""Questions with answers written by hand from NVIDIA's and the distributions' documents, with sources."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml

from provision.catalog import Demands, Offer, Offers, Stack, resolve

FOLDER = Path(__file__).with_name("catalog")
TODAY = date(2026, 11, 30)
FILES = ("architectures", "boundaries", "hosts")
QUESTIONS = [q for f in FILES for q in yaml.safe_load((FOLDER / f"{f}.yml").read_text(encoding="utf-8"))]
ARCHIVES = yaml.safe_load((FOLDER / "archives.yml").read_text(encoding="utf-8"))


def test_there_are_enough_and_each_has_a_source() -> None:
    assert len(QUESTIONS) >= 60
    assert len({q["name"] for q in QUESTIONS}) == len(QUESTIONS)
    assert all(q["source"] for q in QUESTIONS)


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda q: q["name"])
def test_question(question: dict[str, Any]) -> None:
    stack = _ask(question["ask"])
    want = dict(question["want"])
    if "conflicts" in want:
        assert not stack.satisfiable
        assert {frozenset(c.demands) for c in stack.conflicts} == {frozenset(c) for c in want["conflicts"]}
        assert all(c.says and c.relax and c.source for c in stack.conflicts)
        return
    assert stack.satisfiable, stack.conflicts
    kinds = {w.kind for w in stack.warnings}
    unwanted = set(want.pop("no_warnings", ()))
    warned = want.pop("warnings", None)
    if warned is not None:
        assert set(warned) <= kinds if warned else not kinds
    assert not unwanted & kinds
    assert all(told.source for told in (*stack.reasons, *stack.warnings)), "everything said has a source"
    seen = _flat(stack)
    assert {key: seen[key] for key in want} == want


def _ask(ask: dict[str, Any]) -> Stack:
    demands = dict(ask.get("demands", {}))
    if "cuda" in demands:
        demands["cuda"] = tuple(demands["cuda"])
    return resolve(
        ask["gpus"],
        os=ask["os"],
        arch=ask.get("arch", "x86_64"),
        today=ask.get("today", TODAY),
        archive=_offers(ask.get("offers")),
        demands=Demands(**demands),
    )


def _offers(ask: dict[str, str] | None) -> Offers | None:
    if ask is None:
        return None
    packages: dict[str, tuple[Offer, ...]] = {}
    for source in (s for s in ask if s != "installed"):
        for name, versions in ARCHIVES[ask[source]].items():
            packages[name] = tuple(Offer(v, source, v == versions[0]) for v in versions)
    return Offers(packages, ask.get("installed"))


def _flat(stack: Stack) -> dict[str, Any]:
    """The answer under the short names of the question files."""
    driver = stack.driver
    assert driver is not None
    seen: dict[str, Any] = {
        name: list(value) if isinstance(value, tuple) else value for name, value in vars(driver).items()
    }
    for name in ("cuda", "cudnn", "nccl"):
        part = getattr(stack, name)
        seen[name] = part.version if part else None
        seen[f"{name}_packages"] = list(part.packages) if part else None
        seen[f"{name}_pin"] = list(part.pin) if part else None
    seen["cuda_others"] = [part.version for part in stack.cuda_others]
    seen["fabric_manager"] = list(stack.fabric_manager.packages) if stack.fabric_manager else None
    return seen
