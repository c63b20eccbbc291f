"""Harmless changes keep a fact; whatever else happens to an answer, no parser raises."""

from __future__ import annotations

import copy
import dataclasses
import json
import re
from typing import Any

import pytest
import yaml
from facts_cases import CASES, ROOT, check, facts_of, get, names_of_facts
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from provision.facts import Facts
from provision.facts.known import Unknown
from provision.recording.model import Recording

LOADED = {
    str(path.relative_to(ROOT).with_suffix("")): yaml.safe_load(path.read_text(encoding="utf-8"))
    for path in CASES
}
# These cases are about the very form that a harmless change would touch.
FORM = {
    "topology/rows_of_nics_missing", "smi/cut", "apt/policy_cut", "containers/daemon_json_form_bom",
    "containers/daemon_json_twice",
}  # fmt: skip

NOISE = ["\x00", "9" * 5000, "[[" * 300, "\ud800", "\x1b[31m", "\u0664\u0662", "N/A", "-1", "1e999", "\x85"]
LETTERS = "0123456789:/.,-=[]{}<>\"' \t\nGNaeiX"


def touch(value: Any, depth: int = 0) -> None:
    """Look at everything that a fact offers, computed properties too."""
    if depth > 12 or isinstance(value, (str, int, float, bool, type(None), Unknown)):
        return
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple, set, frozenset)):
        for entry in value:
            touch(entry, depth + 1)
    elif dataclasses.is_dataclass(value):
        for name in dir(value):
            if not name.startswith("_") and not callable(getattr(value, name)):
                touch(getattr(value, name), depth + 1)


def read_all(items: Any) -> dict[str, Any]:
    facts = Facts(Recording("fuzz", "", True, 0.0, items))
    read = {name: getattr(facts, name) for name in names_of_facts()}
    touch(read)
    facts.file("/etc/fstab")
    facts.files("/etc/apt/sources.list.d/*")
    return read


def with_extra_keys(value: Any) -> Any:
    """The same JSON with members that a newer tool might add."""
    if isinstance(value, list):
        return [with_extra_keys(entry) for entry in value]
    if isinstance(value, dict) and value and all(isinstance(entry, dict) for entry in value.values()):
        return {key: with_extra_keys(entry) for key, entry in value.items()}
    if isinstance(value, dict) and value:
        return {"x-new": "of a newer tool", **{k: with_extra_keys(v) for k, v in value.items()}}
    return value


def changed(text: str, how: str) -> str:
    if how == "crlf":
        return text.replace("\r\n", "\n").replace("\n", "\r\n")
    if how == "blank lines":
        return text + "\n\n" if text.strip() and "<nvidia_smi_log>" not in text else text
    if how == "escapes":
        return "\x1b[0m" + text if text.strip() else text
    if how == "newer xml":
        # A new element in each GPU, one beside them, and other blanks between all.
        text = re.sub(r"(<gpu id=[^>]*>)", r"\1<new_part><inner>N/A</inner></new_part>", text)
        text = text.replace("</nvidia_smi_log>", "<new_total>1</new_total></nvidia_smi_log>")
        return re.sub(r">\n\s*<", "><", text) if text.rstrip().endswith("</nvidia_smi_log>") else text
    if how == "newer json" and text.lstrip()[:1] in ("[", "{"):
        try:
            document = json.loads(text)
        except ValueError:
            return text
        return (
            text
            if "SAMSUNG_S1-part1" in text or '"sys_vendor"' in text
            else json.dumps(with_extra_keys(document))
        )
    return text


@pytest.mark.parametrize("name", sorted(set(LOADED) - FORM))
def test_harmless_changes_keep_the_fact(name: str) -> None:
    for how in ("crlf", "blank lines", "escapes", "newer xml", "newer json", "other items"):
        keeps_the_fact(copy.deepcopy(LOADED[name]), how)


def keeps_the_fact(case: dict[str, Any], how: str) -> None:
    items, expected = case["items"], case["expected"]
    if how == "other items":
        items = {"zz.newer-question": {"rc": 0, "stdout": "?"}, **items}
    for raw in filter(lambda raw: isinstance(raw, dict), items.values()):
        for key in ("stdout", "text"):
            if isinstance(raw.get(key), str):
                raw[key] = changed(raw[key], how)
    fact = get(facts_of(items), case["fact"])
    if isinstance(expected, dict) and set(expected) == {"unknown"}:
        # What could not be told cannot be told now, whatever the words.
        assert isinstance(fact, Unknown), how
    else:
        check(fact, expected, f"{case['fact']} ({how})")


def damaged(draw: Any, text: str) -> str:
    """Cut it, drop a piece, write something into it, or turn a few characters into others."""
    if not text:
        return draw(st.text(max_size=40))
    kind = draw(st.sampled_from(["cut", "head", "drop", "insert", "letters", "twice", "shuffle"]))
    at = draw(st.integers(0, len(text)))
    if kind == "cut":
        return text[:at]
    if kind == "head":
        return text[at:]
    if kind == "drop":
        return text[:at] + text[at + draw(st.integers(1, 60)) :]
    if kind == "insert":
        noise = st.one_of(st.text(max_size=30), st.sampled_from(NOISE))
        return text[:at] + draw(noise) + text[at:]
    if kind == "letters":
        swaps = draw(st.dictionaries(st.sampled_from(LETTERS), st.text(max_size=2), max_size=4))
        return text.translate(str.maketrans(swaps))
    if kind == "twice":
        return text + text[at:]
    lines = text.splitlines(keepends=True)
    return "".join(draw(st.permutations(lines))) if len(lines) < 60 else "".join(reversed(lines))


junk = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)


@st.composite
def broken_items(draw: Any) -> dict[str, Any]:
    """The items of one case, with one of its answers damaged in its text or in its form."""
    case = LOADED[draw(st.sampled_from(sorted(LOADED)))]
    items = copy.deepcopy(case["items"])
    name = draw(st.sampled_from(sorted(items)))
    raw = items[name]
    kinds = ["text", "text", "text", "form", "nested", "rc"] if isinstance(raw, dict) else ["nested"]
    kind = draw(st.sampled_from(kinds))
    if kind == "text":
        for key in ("stdout", "text"):
            if isinstance(raw.get(key), str):
                raw[key] = damaged(draw, raw[key])
    elif kind == "form":
        raw[draw(st.sampled_from([*raw, "stdout", "cut", "paths"]))] = draw(junk)
    elif kind == "nested":
        items[name] = nested(draw, raw)
    else:
        raw["rc"] = draw(st.sampled_from([None, 1, 127, 255, "0"]))
    return items


def nested(draw: Any, value: Any) -> Any:
    """Junk somewhere inside, for answers that are documents themselves."""
    if isinstance(value, dict) and value:
        key = draw(st.sampled_from(sorted(value, key=str)))
        return {**value, key: nested(draw, value[key])}
    if isinstance(value, list) and value:
        at = draw(st.integers(0, len(value) - 1))
        return [*value[:at], nested(draw, value[at]), *value[at + 1 :]]
    if isinstance(value, str) and value[:1] in ("[", "{"):
        try:
            return json.dumps(nested(draw, json.loads(value)))
        except ValueError:
            return draw(junk)
    return draw(junk)


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(broken_items())
def test_no_answer_makes_a_parser_raise(items: dict[str, Any]) -> None:
    read_all(items)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_cut_report_of_nvidia_smi_is_unknown(data: st.DataObject) -> None:
    text = LOADED["smi/h100_r580_fabric"]["items"]["nvidia-smi.query"]["stdout"]
    at = data.draw(st.integers(0, len(text.rstrip()) - 1))
    assert isinstance(facts_of({"nvidia-smi.query": {"rc": 0, "stdout": text[:at]}}).smi, Unknown)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_a_cut_topology_is_never_whole(data: st.DataObject) -> None:
    text = LOADED["topology/a100x2_tabs"]["items"]["nvidia-smi.topology"]["stdout"]
    table = text[: text.index("Legend:")].rstrip()
    cut = table[: data.draw(st.integers(0, len(table) - 1))].rstrip("\n")
    read = facts_of({"nvidia-smi.topology": {"rc": 0, "stdout": cut}}).topology
    assert isinstance(read, Unknown) or not read.complete
