"""The published schema of recordings: what we take keeps it, and it refuses what is none."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from cases import CASES, HEALTHY, RECORDINGS, alone

from provision.recording.model import Recording
from provision.recording.program import program
from provision.recording.remote import from_output
from provision.report import documents
from provision.transport.local import Local

SCHEMA = documents.schema("gpu-provision/recording/1")


def faults(document: dict[str, Any]) -> list[str]:
    found = jsonschema.Draft202012Validator(SCHEMA).iter_errors(document)
    return [f"{error.json_path}: {error.message[:200]}" for error in found]


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_the_recordings_and_cases_of_the_tests_keep_it() -> None:
    whole = [Recording.from_json(file.read_text(encoding="utf-8")) for file in RECORDINGS.glob("h*/*.json")]
    assert len(whole) >= 3
    for recording in (*whole, *map(alone, CASES)):
        assert faults(recording.as_dict()) == []


def test_a_recording_of_this_machine_keeps_it() -> None:
    sent = program(sudo=False)
    done = Local().run(sent.argv, sent.stdin, 90)
    taken = from_output(done.stdout, done.stderr, sent, host="local").as_dict()
    assert len(taken["items"]) > 60
    assert faults(taken) == []


@pytest.mark.parametrize(
    "answer",
    [
        "text",
        {"rc": "0"},
        {"missing": True, "stdout": ""},
        {"not_asked": "", "rc": 0},
        {"rc": None, "timed_out": True},
        {"stdout": ["a"]},
        {"missing": False},
    ],
)
def test_an_answer_of_no_known_form_is_refused(answer: Any) -> None:
    assert faults({**HEALTHY.as_dict(), "items": {"uname": answer}})


def test_only_its_schema_and_items_are_needed() -> None:
    assert faults({"schema": "gpu-provision/recording/1", "items": {}}) == []
    assert faults({"schema": "gpu-provision/recording/2", "items": {}})
    assert faults({"schema": "gpu-provision/recording/1"})
