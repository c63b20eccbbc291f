"""From recordings through facts to verdicts, by chance: what means nothing changes nothing, and no damage
makes a host look better.

Beside the small run that every change has, a large one has the marker `full`.
"""

from __future__ import annotations

import copy
import json
import random
import re
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
from cases import CASES, HEALTHY, RECORDINGS, judged, laid_over, load, told_elsewhere
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from provision.controls.model import Status
from provision.recording.model import Recording

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SMALL = settings(
    max_examples=60, derandomize=True, deadline=None, database=None,
    suppress_health_check=list(HealthCheck), phases=(Phase.generate,),
)  # fmt: skip
LARGE = settings(max_examples=2500, deadline=None, suppress_health_check=list(HealthCheck))

# What tools say in another language, whichever it is, or where they are not there.
WORDS = (
    "Zugriff verweigert: Gerät nicht verfügbar\n",
    "Befehl nicht gefunden\n",
    "périphérique inconnu : opération non permise\n",
    "commande introuvable\n",
    "コマンドが見つかりません\n",
    "デバイスがありません: 許可がありません\n",
    "\x1b[31m\ufffd\ufffd\n",
    "Segmentation fault\n",
)


@cache
def bases() -> dict[str, tuple[Recording, dict[str, Any]]]:
    """Complete recordings with their profiles' variables: healthy hosts, and each case laid over one."""
    whole = {
        path.stem: (Recording.from_json(path.read_text(encoding="utf-8")), {})
        for path in RECORDINGS.glob("hosts/*.json")
    }
    cases = {c.name: (laid_over(c), variables(c)) for c in CASES if load(c, "wanted.yml").get("lay", True)}
    return {"healthy": (HEALTHY, {}), **whole, **cases}


def variables(case: Path) -> dict[str, Any]:
    return dict(load(case, "wanted.yml").get("variables", {}))


def verdicts(recording: Recording, given_: dict[str, Any]) -> dict[str, tuple[Status, str]]:
    return {name: (found.status, found.actual) for name, found in judged(recording, **given_).items()}


@cache
def verdicts_of(name: str) -> dict[str, tuple[Status, str]]:
    return verdicts(*bases()[name])


@cache
def needs(name: str, item: str) -> frozenset[str]:
    """Controls that pass, and that do not once the item is left out: what its answer is needed for."""
    recording, given_ = bases()[name]
    rest = {key: value for key, value in recording.items.items() if key != item}
    without = verdicts(replace(recording, items=rest), given_)
    return frozenset(
        control
        for control, (status, _) in verdicts_of(name).items()
        if status is Status.PASS and without[control][0] is not Status.PASS
    )


# What means nothing


def crlf(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\n", "\r\n")


def escapes(text: str) -> str:
    return "\x1b[0m" + text if text.strip() else text


def lines_shuffled(text: str, chance: random.Random) -> str:
    lines = text.splitlines(keepends=True)
    chance.shuffle(lines)
    return "".join(
        lines if not lines or lines[-1].endswith("\n") else [f"{line.rstrip()}\n" for line in lines]
    )


def blocks_shuffled(text: str, chance: random.Random) -> str:
    blocks = re.split(r"\n\n+", text.strip("\n"))
    chance.shuffle(blocks)
    return "\n\n".join(blocks) + "\n"


def json_shuffled(value: Any, chance: random.Random) -> Any:
    """The same members in another order, and one more of a newer tool."""
    if isinstance(value, list):
        return [json_shuffled(entry, chance) for entry in value]
    if isinstance(value, dict):
        keys = list(value)
        chance.shuffle(keys)
        more = (
            {"x-newer": "of a newer tool"}
            if keys and not all(isinstance(value[k], dict) for k in keys)
            else {}
        )
        return {**{key: json_shuffled(value[key], chance) for key in keys}, **more}
    return value


def other_json(text: str, chance: random.Random) -> str:
    made = json_shuffled(json.loads(text), chance)
    return json.dumps(made, indent=chance.choice([None, 1, 4]), ensure_ascii=chance.random() < 0.5) + "\n"


def other_xml(text: str, chance: random.Random) -> str:
    text = re.sub(r"(<gpu id=[^>]*>)", r"\1<newer_part><inner>N/A</inner></newer_part>", text)
    return re.sub(r">\s+<", chance.choice(["><", ">\n<", ">\r\n\t\t<"]), text)


# Where the order of lines, or of blocks of them, says nothing.
LINES = ("dpkg.list", "apt.holds", "lsmod", "sysctl", "lspci")
BLOCKS = ("units", "blkid")
# JSON that names things by its keys, or of which a member more would be an answer of its own.
NAMED_BY_KEYS = ("dmi", "disks.by-id", "sysctl", "file:/etc/docker/daemon.json", "rights")


def is_json(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict | list)
    except ValueError:
        return False


def another_form(item: str, text: str, chance: random.Random) -> str:
    """The same answer as another release of the tool, or another way of copying it, might give it."""
    changes: list[Callable[[str], str]] = []
    if is_json(text) and item not in NAMED_BY_KEYS:
        changes.append(lambda found: other_json(found, chance))
    if "</nvidia_smi_log>" in text:
        changes.append(lambda found: other_xml(found, chance))
    if item in LINES:
        changes.append(lambda found: lines_shuffled(found, chance))
    if item in BLOCKS:
        changes.append(lambda found: blocks_shuffled(found, chance))
    if item == "dpkg.list":
        changes.append(lambda found: found + "ii \tzz-other\t1.2-3\tall\nrc \tzz-gone\t1.0\tamd64\n")
    # A file is what it is; what a tool prints may have been copied out of a terminal.
    changes += [crlf] if item.startswith("file:") else [escapes, crlf]
    for change in changes:
        if chance.random() < 0.6:
            text = change(text)
    return text


def harmlessly_changed(recording: Recording, chance: random.Random) -> Recording:
    items: dict[str, Any] = {}
    for item, raw in copy.deepcopy(dict(recording.items)).items():
        changed: Any = raw
        for key in ("stdout", "text"):
            if isinstance(raw, dict) and isinstance(raw.get(key), str) and chance.random() < 0.7:
                changed[key] = another_form(item, raw[key], chance)
        if isinstance(changed, dict):
            changed["x-newer-member"] = {"of": "a newer collector"}
        items[item] = changed
    order = list(items)
    chance.shuffle(order)
    more = {"zz.newer-question": {"rc": 0, "stdout": "?", "stderr": ""}}
    return replace(recording, items={**{item: items[item] for item in order}, **more})


def nothing_changes(name: str, seed: int) -> None:
    recording, given_ = bases()[name]
    found = verdicts(harmlessly_changed(recording, random.Random(seed)), given_)
    changed = {
        control: (was, found[control])
        for control, was in verdicts_of(name).items()
        if found[control][0] is not was[0]
    }
    assert changed == {}, changed


# Damage


def cut(raw: dict[str, Any], at: float) -> dict[str, Any]:
    """What the collector's limit leaves, marked as such."""
    made = dict(raw)
    for key in ("stdout", "text"):
        if isinstance(made.get(key), str):
            made[key] = made[key][: int(at * len(made[key]))]
    return {**made, "cut": True}


def broken_off(raw: dict[str, Any], at: float) -> dict[str, Any]:
    """A document without its end. Lines that end at a line's end cannot be told from all of them."""
    made = dict(raw)
    for key in ("stdout", "text"):
        text = made.get(key)
        if isinstance(text, str) and (text.lstrip()[:1] in ("{", "[") or "</" in text):
            made[key] = text.rstrip()[: max(1, int(at * (len(text.rstrip()) - 1)))]
    return made


def garbled(raw: dict[str, Any], at: float) -> dict[str, Any]:
    """Bytes of a broken line in the middle."""
    made = dict(raw)
    for key in ("stdout", "text"):
        text = made.get(key)
        if isinstance(text, str) and text:
            middle = int(at * len(text))
            made[key] = text[:middle] + "\ufffd\x00\ufffd\n" + text[middle + 7 :]
    return made


def in_words(raw: dict[str, Any], at: float) -> dict[str, Any]:
    words = WORDS[int(at * len(WORDS)) % len(WORDS)]
    if "text" in raw:
        return {**raw, "text": words}
    return {**raw, "rc": (0, 1, 127)[int(at * 100) % 3], "stdout": words, "stderr": words}


def empty(raw: dict[str, Any], _: float) -> dict[str, Any]:
    return {**raw, "rc": 1, "stdout": "", "stderr": ""} if "text" not in raw else {**raw, "text": "\x00"}


DAMAGE: dict[str, Callable[[dict[str, Any], float], dict[str, Any]]] = {
    "cut": cut, "broken off": broken_off, "garbled": garbled, "in words": in_words, "empty": empty,
}  # fmt: skip
# Of what is said in none of its own words nothing can be known any more.
ALL_IS_LOST = ("cut", "in words", "empty")


def deep(value: Any, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
    """The answer with each part of it changed that a tool printed or a file held, at any depth."""
    if isinstance(value, list):
        return [deep(entry, change) for entry in value]
    if isinstance(value, dict) and {"stdout", "text"} & value.keys():
        return change(value)
    return {key: deep(entry, change) for key, entry in value.items()} if isinstance(value, dict) else value


def answered(recording: Recording) -> list[str]:
    return sorted(item for item, raw in recording.items.items() if deep(raw, lambda _: {}) != raw)


def no_damage_makes_it_better(name: str, items: list[int], kind: str, at: float) -> None:
    recording, given_ = bases()[name]
    there = answered(recording)
    hit = {there[index % len(there)] for index in items}
    elsewhere = told_elsewhere(hit)
    damaged = {item: deep(recording.items[item], lambda raw: DAMAGE[kind](raw, at)) for item in hit}
    found = verdicts(replace(recording, items={**recording.items, **damaged}), given_)
    was = verdicts_of(name)
    bad = (Status.WARN, Status.FAIL, Status.UNKNOWN)
    better = {
        control: (was[control], now)
        for control, now in found.items()
        if now[0] is Status.PASS and was[control][0] in bad and control not in elsewhere
    }
    assert better == {}, (hit, better)
    if kind in ALL_IS_LOST:
        lost = frozenset().union(*(needs(name, item) for item in hit))
        still = {c: found[c] for c in lost if found[c][0] is Status.PASS}
        assert still == {}, (hit, still)


NAMES = st.sampled_from(sorted(bases()))
SEEDS = st.integers(0, 2**32)
ITEMS = st.lists(st.integers(0, 200), min_size=1, max_size=3)
POINTS = st.floats(0, 0.999)


@SMALL
@given(NAMES, SEEDS)
def test_what_means_nothing_changes_no_verdict(name: str, seed: int) -> None:
    nothing_changes(name, seed)


@pytest.mark.parametrize("kind", sorted(DAMAGE))
def test_no_damage_makes_a_verdict_better(kind: str) -> None:
    @settings(SMALL, max_examples=24)
    @given(NAMES, ITEMS, POINTS)
    def each(name: str, items: list[int], at: float) -> None:
        no_damage_makes_it_better(name, items, kind, at)

    each()


@pytest.mark.full
@LARGE
@given(NAMES, SEEDS)
def test_what_means_nothing_changes_no_verdict_at_length(name: str, seed: int) -> None:
    nothing_changes(name, seed)


@pytest.mark.full
@LARGE
@given(NAMES, ITEMS, st.sampled_from(sorted(DAMAGE)), POINTS)
def test_no_damage_makes_a_verdict_better_at_length(
    name: str, items: list[int], kind: str, at: float
) -> None:
    no_damage_makes_it_better(name, items, kind, at)
