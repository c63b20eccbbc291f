"""What keeps an audit quick, told by counting and not by the clock: imports, connections, memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tracemalloc
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from provision.catalog import compatibility, offers, search
from provision.profile.compose import compose
from provision.recording.collect.main import MARK
from provision.recording.model import Recording
from provision.runs.look import judge
from provision.yaml_text import read_yaml

if TYPE_CHECKING:
    from collections.abc import Callable

HEALTHY = Path(__file__).parents[1] / "recordings" / "healthy" / "debian12-a100.json"
RECORDING = Recording.from_json(HEALTHY.read_text(encoding="utf-8"))
PROFILE = compose("default", {}, {}, {})
DAY = date(2026, 11, 30)

# Each takes longer to import than a recording to judge.
HEAVY = {
    "ansible",
    "jinja2",
    "paramiko",
    "fabric",
    "cryptography",
    "testinfra",
    "pytest",
    "asyncio",
    "logging",
}


@pytest.mark.parametrize(("form", "more"), [("json", {"rich", "importlib.resources"}), ("text", set())])
def test_a_saved_recording_is_judged_without_what_it_does_not_need(form: str, more: set[str]) -> None:
    code = (
        "import sys; from provision.cli.main import main\n"
        "try: main(sys.argv[1:])\n"
        "except SystemExit: pass\n"
        "print(*sys.modules, file=sys.stderr)"
    )
    words = [sys.executable, "-c", code, "audit", "--recording", str(HEALTHY), "--format", form]
    done = subprocess.run(words, capture_output=True, text=True)
    loaded = set(done.stderr.split())
    assert "provision.controls.gpu" in loaded
    assert not loaded & (
        HEAVY | more | {"provision.runs.fleet", "provision.transport.ssh", "provision.converge"}
    )


def test_all_yaml_is_read_by_the_quick_loader() -> None:
    """libyaml's takes a tenth of the time; where PyYAML was built without it there is nothing to see."""
    if not hasattr(yaml, "CSafeLoader"):
        pytest.skip("this PyYAML was built without libyaml")
    code = (
        "import sys, yaml; from provision.cli.main import main\n"
        "def slow(*_): raise SystemExit('read by the slow loader')\n"
        "yaml.SafeLoader.get_single_node = yaml.SafeLoader.get_single_data = slow\n"
        "main(['audit', '--recording', sys.argv[1], '--profile', 'training', '--format', 'json'])"
    )
    done = subprocess.run([sys.executable, "-c", code, str(HEALTHY)], capture_output=True, text=True)
    assert "slow loader" not in done.stderr
    assert json.loads(done.stdout)["profile"] == "training"
    assert read_yaml("a: [1]") == {"a": [1]}


def test_a_judged_host_takes_little_memory() -> None:
    """A fleet of 300 may take 200 MB, the report's text among it; the recording itself has to go."""
    judge(RECORDING, PROFILE, DAY)
    text, count = HEALTHY.read_text(encoding="utf-8"), 4
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        kept = [judge(Recording.from_json(text), PROFILE, DAY).judgement for _ in range(count)]
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert all(host.findings for host in kept)
    assert (after - before) / count < 100_000


def test_the_resolver_asks_what_is_costly_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hundreds of sets are looked at for each host; how a toolkit runs on a branch depends on few of them."""
    calls: dict[str, list[tuple[object, ...]]] = {"fits": [], "sources": []}

    def counted(
        name: str, function: Callable[..., object], key: Callable[..., object]
    ) -> Callable[..., object]:
        def call(*arguments: object) -> object:
            calls[name].append((key(*arguments),))
            return function(*arguments)

        return call

    monkeypatch.setattr(
        search,
        "compatibility",
        counted(
            "fits",
            compatibility.compatibility,
            lambda of, branch, release, v, gpus: (branch.branch, release, v),
        ),
    )
    monkeypatch.setattr(
        search,
        "toolkit_sources",
        counted("sources", search.toolkit_sources, lambda q, c, cuda: (c.source, c.os, c.arch, cuda)),
    )
    judge(RECORDING, PROFILE, DAY)
    for asked in calls.values():
        assert asked
        assert len(asked) == len(set(asked))


def test_offers_are_sorted_by_source_once() -> None:
    own, other = offers.Offer("1", "debian"), offers.Offer("2", "nvidia")
    host = offers.Offers({"a": (own, other, replace(own, version="0"))})
    assert host.of("a", "debian") == (own, replace(own, version="0"))
    assert host.of("a", "nvidia") == (other,)
    assert host.of("a", "ubuntu") == host.of("b", "debian") == ()
    assert host.of("a", "debian") is host.of("a", "debian")


SSH = """#!{python}
import base64, json, re, sys, zlib
open({starts!r}, "a").write("started\\n")
token = re.search("{mark} ([0-9a-f]+) ", sys.argv[-1])[1]
document = {{"as_root": True, "seconds": 0.1, "items": json.load(open({items!r}))["items"]}}
text = base64.b64encode(zlib.compress(json.dumps(document).encode())).decode()
print("{mark}", token, len(text))
print(text)
print("{mark}", token, "end")
"""


@pytest.mark.parametrize("command", ["audit", "record"])
def test_a_host_costs_one_connection(tmp_path: Path, command: str) -> None:
    """An `ssh` that notes each start, and answers as the healthy host would."""
    ssh, starts = tmp_path / "ssh", tmp_path / "starts"
    ssh.write_text(SSH.format(python=sys.executable, starts=str(starts), mark=MARK, items=str(HEALTHY)))
    ssh.chmod(0o755)
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "provision",
            command,
            "one.invalid",
            *(["--format=json"] * (command == "audit")),
        ],
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
    )
    document = json.loads(done.stdout)
    assert document.get("items") or document["hosts"][0]["reached"], done.stderr
    assert starts.read_text().split() == ["started"]
