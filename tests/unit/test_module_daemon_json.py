"""daemon.json in every form that hosts have it in: merged without loss, or refused with line and column."""

# ruff: noqa: E501

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Mapping

# A file of the module's own, which Ansible would ship to the host.
FILE = Path(__file__).parents[2] / "plugins" / "module_utils" / "daemon_json.py"
_spec = importlib.util.spec_from_file_location("on_host_daemon_json", FILE)
assert _spec is not None
assert _spec.loader is not None
daemon_json = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(daemon_json)

OURS: dict[str, Any] = {
    "runtimes": {"nvidia": {"path": "nvidia-container-runtime", "runtimeArgs": []}},
    "default-ulimits": {"memlock": {"Name": "memlock", "Hard": -1, "Soft": -1}},
}
# What the file holds before, and what must be there afterwards beside ours; keys in their old order.
MERGED: dict[str, tuple[bytes, Mapping[str, Any]]] = {
    "other settings": (b'{"registry-mirrors": ["https://mirror.example"], "log-opts": {"max-size": "10m"}, "data-root": "/data"}',
                       {"registry-mirrors": ["https://mirror.example"], "log-opts": {"max-size": "10m"}, "data-root": "/data"}),
    "another runtime": (b'{"runtimes": {"kata": {"path": "/opt/kata"}}}', {"runtimes": {"kata": {"path": "/opt/kata"}}}),
    "another limit": (b'{"default-ulimits": {"nofile": {"Name": "nofile", "Hard": 64000, "Soft": 64000}}}',
                      {"default-ulimits": {"nofile": {"Name": "nofile", "Hard": 64000, "Soft": 64000}}}),
    "empty": (b"", {}),
    "blanks only": (b" \r\n\t\n", {}),
    "a byte order mark": (b'\xef\xbb\xbf{"debug": true}', {"debug": True}),
    "CRLF": (b'{\r\n  "debug": true,\r\n  "icc": false\r\n}\r\n', {"debug": True, "icc": False}),
    "tabs": (b'{\n\t"debug": true\n}\n', {"debug": True}),
    "other letters": ('{"labels": ["ort=Köln", "名=前"]}'.encode(), {"labels": ["ort=Köln", "名=前"]}),
    "half a surrogate pair": (b'{"labels": ["\\ud83d"]}', {"labels": ["\ud83d"]}),
    "a large number": (b'{"shutdown-timeout": 123456789012345678901234567890}', {"shutdown-timeout": 123456789012345678901234567890}),
    "huge": (json.dumps({f"key-{i}": "x" * 1000 for i in range(3000)}).encode(), {f"key-{i}": "x" * 1000 for i in range(3000)}),
    "one name in two objects": (b'{"log-opts": {"tag": "a"}, "storage-opts": [{"tag": 1}, {"tag": 2}]}',
                                {"log-opts": {"tag": "a"}, "storage-opts": [{"tag": 1}, {"tag": 2}]}),
    "an empty object": (b"{}", {}),
}  # fmt: skip
REFUSED = {
    "a comment": (b'{\n  // kept by hand\n  "debug": true\n}', "not JSON at line 2, column 3"),
    "a comma at the end": (b'{\n  "debug": true,\n}', "not JSON at line "),
    "a stray brace": (b'{\n  "insecure-registries": ["a"] },\n  "debug": true\n}', "not JSON at line 2, column 33"),
    "cut off": (b'{"debug": tr', "not JSON at line 1, column 11"),
    "single quotes": (b"{'debug': true}", "not JSON at line 1, column 2"),
    "a name twice": (b'{\n  "log-opts": {},\n  "icc": false,\n  "log-opts": {"tag": "x"}\n}', '"log-opts" stands a second time in its object at line 4, column 3'),
    "a name twice, written otherwise": (b'{"a": 1, "b": {"x": 1, "x": 2}}', '"x" stands a second time in its object at line 1, column 24'),
    "a list": (b'[{"debug": true}]', "begins with [ at line 1, column 1"),
    "a text": (b'"debug"', 'begins with " at line 1, column 1'),
    "not UTF-8": (b'{\n  "labels": ["K\xf6ln"]\n}', "not UTF-8 at line 2, column 16"),
    "UTF-16": ('{"debug": true}'.encode("utf-16"), "UTF-16"),
    "NaN": (b'{"shutdown-timeout": NaN}', "NaN is no JSON"),
    "nested too deep": (b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "cannot be read"),
    "runtimes that are a list": (b'{"runtimes": ["nvidia"]}', "runtimes is no object"),
    "a control character": (b'{"labels": ["a\x01"]}', "not JSON at line 1, column 15"),
}  # fmt: skip


@pytest.mark.parametrize("name", MERGED)
def test_merged_without_loss(name: str) -> None:
    raw, there = MERGED[name]
    now, sound = daemon_json.read(raw)
    assert now == there
    new = daemon_json.merged(now, OURS, [])
    written = daemon_json.write(new, raw)
    again, reads = daemon_json.read(written)
    assert reads
    for key, value in there.items():
        expected = {**value, **OURS[key]} if key in OURS else value
        assert again[key] == expected, key
    assert set(again) == set(there) | set(OURS)
    assert [key for key in again if key in there] == list(there)
    assert daemon_json.merged(again, OURS, []) == again
    assert daemon_json.changes(again, again) == []
    # Docker before 23.0 starts with neither of these.
    assert sound is (bool(raw.strip()) and not raw.startswith(b"\xef\xbb\xbf"))


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_its_place(name: str) -> None:
    raw, says = REFUSED[name]
    with pytest.raises(daemon_json.Refused) as told:
        daemon_json.read(raw)
    assert says in str(told.value)


def test_the_layout_is_kept() -> None:
    tabs = daemon_json.write({"debug": True}, MERGED["tabs"][0])
    assert tabs == b'{\n\t"debug": true\n}\n'
    ends = daemon_json.write({"debug": True}, MERGED["CRLF"][0])
    assert ends == b'{\r\n  "debug": true\r\n}\r\n'


def test_what_was_ours_is_taken_out_and_the_rest_stays() -> None:
    now = daemon_json.merged({"debug": True, "runtimes": {"kata": {"path": "k"}}}, OURS, [])
    paths = [["runtimes", "nvidia"], ["default-ulimits", "memlock"], ["default-shm-size"]]
    assert daemon_json.merged(now, {}, paths) == {"debug": True, "runtimes": {"kata": {"path": "k"}}}


def test_changes_name_keys_and_no_values() -> None:
    now = {"proxies": {"http-proxy": "http://user:secret@proxy"}, "runtimes": {"kata": {}}}
    told = daemon_json.changes(now, daemon_json.merged(now, OURS, [["proxies"]]))
    assert told == ["runtimes.nvidia", "default-ulimits.memlock", "proxies"]
