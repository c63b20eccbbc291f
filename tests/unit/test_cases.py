"""Situations met on real GPU servers: each recording alone, and laid over a complete healthy one.

A case is a folder: `items.yml` has its answers (see cases.items), `wanted.yml` what is found in them.
`wanted` holds in both, `over` only laid over (and wins there), `alone` only alone. Laid over, nothing
else may change. `cards` are those of the healthy host below it, `variables` its profile's. `lay: false` says
that a case is judged alone, with `note` telling why; `acted` tells where a role or a run acts on it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from cases import CASES, alone, below, judged, laid_over, load

if TYPE_CHECKING:
    from provision.controls.model import Finding

BY_NAME = {path.name: path for path in CASES}


def hold(found: dict[str, Finding], wanted: dict[str, dict[str, Any]]) -> None:
    for control, want in wanted.items():
        finding = found[control]
        assert finding.status == want["status"], f"{control}: {finding}"
        assert finding.role == want.get("role", finding.role), f"{control}: {finding}"
        said = {
            "actual": finding.actual,
            "expected": finding.expected,
            "advice": finding.advice,
            "evidence": "\n".join(finding.evidence),
        }
        for part in said:
            for words in want.get(part, ()):
                assert words in said[part], f"{control}: {part} lacks {words!r}: {said[part]}"


@pytest.mark.parametrize("name", sorted(BY_NAME))
def test_alone(name: str) -> None:
    about = load(BY_NAME[name], "wanted.yml")
    wanted = {**about["wanted"], **about.get("alone", {})}
    found = judged(alone(BY_NAME[name]), **about.get("variables", {}))
    hold(found, wanted)
    # What was not recorded is never a pass; that is asserted for whole subjects that no case here records.
    assert wanted or about.get("over"), "a case that wants nothing"


@pytest.mark.parametrize(
    "name", sorted(n for n, p in BY_NAME.items() if load(p, "wanted.yml").get("lay", True))
)
def test_laid_over_a_healthy_host(name: str) -> None:
    about = load(BY_NAME[name], "wanted.yml")
    wanted = {**about["wanted"], **about.get("over", {})}
    healthy = judged(below(BY_NAME[name]), **about.get("variables", {}))
    found = judged(laid_over(BY_NAME[name]), **about.get("variables", {}))
    hold(found, wanted)
    changed = {
        control: f"{healthy[control].status} -> {finding.status}: {finding.actual}"
        for control, finding in found.items()
        if control not in wanted and finding.status != healthy[control].status
    }
    assert changed == {}


def test_every_case_says_where_it_comes_from() -> None:
    for name, path in BY_NAME.items():
        about = load(path, "wanted.yml")
        assert about["source"], name
        assert about["about"], name
        assert about.get("lay", True) or about["note"], name
