"""An nvidia-smi that hangs in the kernel, as real ones do: no signal ends it, and nothing may wait for it.

A write to a frozen file system sleeps as a call into a stuck driver does: uninterruptibly (state D), with
SIGKILL pending until the file system thaws.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from provision.facts import Facts
from provision.facts.smi_trouble import SmiTrouble
from provision.recording.program import program
from provision.recording.remote import from_output
from provision.transport.local import Local

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provision.recording.model import Recording

TOOLS = ("mkfs.ext4", "mount", "fsfreeze", "losetup")
LIMIT = 1.5

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not all(map(shutil.which, TOOLS)), reason="needs root, loop devices and fsfreeze"
)


def run(*argv: object) -> None:
    subprocess.run([str(word) for word in argv], check=True, capture_output=True)


@pytest.fixture
def stuck() -> Iterator[Path]:
    """A program called nvidia-smi that hangs in state D until the fixture ends."""
    # Not below /tmp: the collector has a /tmp of its own.
    folder = Path("/var/tmp") / f"gpu-provision-hang-{os.getpid()}"
    (folder / "frozen").mkdir(parents=True)
    image = folder / "image"
    with image.open("wb") as file:
        file.truncate(8 << 20)
    frozen = False
    try:
        run("mkfs.ext4", "-q", "-F", image)
        run("mount", "-o", "loop", image, folder / "frozen")
        smi = folder / "nvidia-smi"
        smi.write_text(f"#!/bin/sh\necho started\n: > {folder}/frozen/x\n")
        smi.chmod(0o755)
        run("fsfreeze", "-f", folder / "frozen")
        frozen = True
        yield smi
    finally:
        if frozen:
            run("fsfreeze", "-u", folder / "frozen")
        for _ in range(50):
            if (
                subprocess.run(["umount", folder / "frozen"], capture_output=True, check=False).returncode
                == 0
            ):
                break
            time.sleep(0.1)
        shutil.rmtree(folder)


def asked(smi: Path) -> Recording:
    def question(name: str, *arguments: str) -> dict[str, Any]:
        more = {"seconds": LIMIT, "lane": "nvidia-smi", "never_twice": True}
        return {"name": f"nvidia-smi.{name}", "argv": [str(smi), *arguments], **more}

    others = [
        {"name": "uname", "argv": ["uname", "-a"], "seconds": 5},
        {"name": "os-release", "builtin": "file", "args": ["/etc/os-release"], "seconds": 5},
        {"name": "nvidia.processes", "builtin": "nvidia_processes", "seconds": 5},
        {"name": "sockets", "builtin": "sockets", "seconds": 5},
    ]
    items = [
        question("query", "-q", "-x"),
        question("topology", "topo", "-m"),
        question("list", "-L"),
        *others,
    ]
    sent = program(sudo=False, questions={"items": items, "seconds": 20})
    done = Local().run(sent.argv, sent.stdin, 30)
    return from_output(done.stdout, done.stderr, sent, host="local")


def stuck_processes(smi: Path) -> list[int]:
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            name, state = (entry / "stat").read_text().split("(", 1)[1].rsplit(")", 1)
        except OSError:
            continue
        if name == smi.name and state.split()[0] == "D":
            found.append(int(entry.name))
    return found


@pytest.mark.alone
def test_what_hangs_is_named_and_not_asked_again(stuck: Path) -> None:
    began = time.monotonic()
    first = asked(stuck)
    assert time.monotonic() - began < LIMIT + 6
    raw = first.answer("nvidia-smi.query").raw
    left = stuck_processes(stuck)
    assert len(left) == 1
    assert (raw["rc"], raw["timed_out"], raw["seconds"]) == (None, True, LIMIT)
    assert raw["left_behind"] == [{"pid": left[0], "state": "D", "command": "nvidia-smi"}]
    for name in ("topology", "list"):
        assert first.answer(f"nvidia-smi.{name}").not_asked == "nvidia-smi.query did not answer"
    # Right about everything else.
    assert first.answer("uname").rc == 0
    assert first.answer("os-release").text == Path("/etc/os-release").read_text()
    assert first.answer("sockets").rc == first.answer("nvidia.processes").rc == 0

    began = time.monotonic()
    second = asked(stuck)
    assert time.monotonic() - began < 5
    assert stuck_processes(stuck) == left
    why = second.answer("nvidia-smi.query")
    assert f"an earlier nvidia-smi still hangs in the kernel (pid {left[0]}" in (why.not_asked or "")
    assert why.raw["left_behind"][0]["pid"] == left[0]
    assert second.answer("uname").rc == 0
    for recording in (first, second):
        assert Facts(recording).smi_trouble is SmiTrouble.HANG
