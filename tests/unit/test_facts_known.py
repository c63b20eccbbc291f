"""Known, unknown and absent; files; and the bounds of what is read."""

from __future__ import annotations

import copy
import pickle

import pytest
from facts_cases import facts_of

from provision.facts.known import ABSENT, Absent, Unknown, Unsupported, then
from provision.facts.smi_xml import Refused, tree


def test_absent_is_one() -> None:
    assert Absent() is ABSENT
    assert copy.deepcopy(ABSENT) is ABSENT
    assert pickle.loads(pickle.dumps(ABSENT)) is ABSENT
    assert not ABSENT


@pytest.mark.parametrize("fact", [Unknown("why"), Unsupported("N/A", deprecated=True)])
def test_an_unknown_has_no_truth_value(fact: Unknown) -> None:
    with pytest.raises(TypeError, match="used as a truth value"):
        bool(fact)
    assert then(fact, str) is fact


def test_then_uses_what_is_known() -> None:
    assert then(3, str) == "3"


def test_a_file() -> None:
    items = {
        "file:/etc/there": {"text": "x\r\n"},
        "file:/etc/empty": {"text": ""},
        "file:/etc/gone": {"missing": True},
        "file:/etc/secret": {"denied": True},
        "file:/etc/long": {"text": "part", "cut": True},
    }
    facts = facts_of(items)
    assert facts.file("/etc/there") == "x\n"
    assert facts.file("/etc/empty") == ""
    assert facts.file("/etc/gone") is ABSENT
    for path, why in (("secret", "no right"), ("long", "cut at"), ("never-asked", "was not asked")):
        read = facts.file(f"/etc/{path}")
        assert isinstance(read, Unknown)
        assert why in read.reason


def test_a_file_that_a_listing_does_not_have_is_absent() -> None:
    listing = {"paths": ["/etc/modprobe.d/a.conf"]}
    facts = facts_of({"glob:/etc/modprobe.d/*": listing, "file:/etc/modprobe.d/a.conf": {"text": "a"}})
    assert facts.file("/etc/modprobe.d/a.conf") == "a"
    assert facts.file("/etc/modprobe.d/b.conf") is ABSENT
    assert isinstance(facts.file("/etc/modprobe.d/sub/b.conf"), Unknown)  # `*` does not look into folders
    assert isinstance(facts.file("/etc/other"), Unknown)
    assert facts.files("/etc/modprobe.d/*") == {"/etc/modprobe.d/a.conf": "a"}


@pytest.mark.parametrize(
    "listing", [{"denied": True}, {"paths": [f"/etc/modprobe.d/{n}" for n in range(200)]}]
)
def test_a_listing_that_may_not_be_whole_proves_nothing(listing: dict[str, object]) -> None:
    assert isinstance(facts_of({"glob:/etc/modprobe.d/*": listing}).file("/etc/modprobe.d/b.conf"), Unknown)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("<a>" * 41 + "</a>" * 41, "nested deeper"),
        ("<a>" + "x" * (32 * 1024 * 1024) + "</a>", "larger than"),
        ("<a><b></a>", "mismatched tag"),
        ("<a>\x00</a>", "not well-formed"),
        ("", "no element found"),
    ],
)
def test_xml_is_read_within_bounds(text: str, why: str) -> None:
    with pytest.raises(Refused, match=why):
        tree(text)


def test_a_billion_laughs_cost_nothing() -> None:
    entities = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 10))
    with pytest.raises(Refused, match="entities"):
        tree(f'<!DOCTYPE a [<!ENTITY a0 "ha">{entities}]><a>&a9;</a>')
