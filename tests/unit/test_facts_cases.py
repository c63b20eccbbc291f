"""Each file below tests/recordings/facts is one case: raw answers to some items and the fact that they mean.

Adding a case is adding a file. `fact` is an attribute of Facts, or a call of one (`file /etc/fstab`).
`expected` is matched in part: a mapping names attributes, properties, keys or methods of the fact
(`gpus.0.name`, `link GPU0 GPU1`), a list is matched whole. `unknown: TEXT` is an Unknown whose reason
has the text; `unsupported: TEXT` one that says there is no such value; `absent: true` is ABSENT.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml
from facts_cases import CASES, ROOT, check, facts_of, get, names_of_facts

from provision.facts.known import Unknown

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("path", CASES, ids=lambda path: str(path.relative_to(ROOT).with_suffix("")))
def test_case(path: Path) -> None:
    case = yaml.safe_load(path.read_text(encoding="utf-8"))
    facts = facts_of(case["items"])
    check(get(facts, case["fact"]), case["expected"], case["fact"])


def test_every_fact_has_a_case() -> None:
    covered = {
        yaml.safe_load(path.read_text(encoding="utf-8"))["fact"].split(" ")[0].split(".")[0] for path in CASES
    }
    assert not set(names_of_facts()) - covered


@pytest.mark.parametrize("name", names_of_facts())
def test_what_was_not_asked_is_unknown(name: str) -> None:
    value = getattr(facts_of({}), name)
    assert isinstance(value, Unknown)
    assert "was not asked" in value.reason
    with pytest.raises(TypeError, match="used as a truth value"):
        bool(value)
