"""What a lab leaves on its machine, wherever one could look for it."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from provision.lab.place import place


def traces() -> list[str]:
    """Mounts, links, addresses, routes, rules, cgroups, processes and nspawn's folders of the lab in use."""
    here = place()
    marks = (here.bridge, str(here.state))
    found = [f"mount: {line}" for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    for words in (
        ["ip", "-o", "link"],
        ["ip", "-o", "addr"],
        ["ip", "route"],
        ["iptables-save"],
        ["ip6tables-save"],
    ):
        said = subprocess.run(words, capture_output=True, text=True, check=True).stdout
        found += [f"{' '.join(words)}: {line}" for line in said.splitlines()]
    found += [f"folder: {path}" for path in Path("/sys/fs/cgroup").rglob("*gpu-provision-*") if path.is_dir()]
    found += [f"folder: {path}" for path in Path("/run/systemd/nspawn").rglob("*")]
    found += [f"folder: {here.run}"] if here.run.exists() else []
    own = _line_of(os.getpid())
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            cgroups = (process / "cgroup").read_text().replace("\n", " ")
            dead = "State:\tZ" in (process / "status").read_text()
        except OSError:
            continue  # has ended
        if process.name not in own and not dead:
            found.append(f"process {process.name}: {words} in {cgroups}")
    return [line for line in found if any(mark in line for mark in marks)]


def _line_of(pid: int) -> set[str]:
    """This process and those that it descends from: a lab's path may stand in their command lines."""
    found = set()
    while pid:
        found.add(str(pid))
        match = re.search(r"^PPid:\s+(\d+)", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
        pid = int(match[1]) if match else 0
    return found
