"""What the kernel holds and no file tells, such as a loaded rule set: kept as the text that brings it back.

Each entry becomes one text and one command that reads it. nft and iptables-restore put a table back in one
transaction (nft(8), iptables-restore(8)), so there is no moment without a rule set.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .snapshot import SnapshotError
from .state import write_whole

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

# A rule set of any size loads in less; the revert script runs at boot, and may not hang there.
SECONDS = 60

# The built-in chains of iptables' tables (iptables(8)), all open: a table that was not loaded.
CHAINS = {
    "filter": ("INPUT", "FORWARD", "OUTPUT"),
    "nat": ("PREROUTING", "INPUT", "OUTPUT", "POSTROUTING"),
    "mangle": ("PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"),
    "raw": ("PREROUTING", "OUTPUT"),
}
WHOLE = "ruleset"


@dataclass(frozen=True)
class Kept:
    """`text` on the standard input of `command` brings the old state back; `check` says whether it would."""

    command: tuple[str, ...]
    text: str
    check: tuple[str, ...] = ()


def take(directory: Path, entries: Sequence[dict[str, Any]]) -> None:
    """Keep every entry in `directory`, and the script `loaded` that puts them back from there.

    Raises SnapshotError where an entry could not be read, or where what was read could not be loaded again.
    """
    lines = []
    for number, entry in enumerate(entries):
        kept = keep(entry)
        if kept.check:
            _run(kept.check, kept.text, f"what is loaded now could not be put back ({_name(entry)})")
        write_whole(directory / f"loaded.{number}", kept.text.encode("utf-8", "surrogateescape"), 0o600)
        lines.append(f"timeout {SECONDS} {shlex.join(kept.command)} <loaded.{number} || failed=1\n")
    if lines:
        script = "".join(["failed=0\n", *lines, "exit $failed\n"])
        write_whole(directory / "loaded", script.encode(), 0o600)


def keep(entry: dict[str, Any]) -> Kept:
    """The present state of one entry. Raises SnapshotError."""
    if entry.get("nft"):
        return _nft(entry["nft"])
    for tool in ("iptables", "ip6tables"):
        if entry.get(tool):
            return _iptables(tool, entry[tool])
    return _own(entry)


def _nft(table: str) -> Kept:
    """One table (`inet filter`), or the whole `ruleset`."""
    nft = _tool("nft")
    load = (nft, "-f", "-")
    why = f"nft's {table} could not be kept"
    if table == WHOLE:
        head, text = "flush ruleset\n", _run((nft, "list", "ruleset"), "", why)
    else:
        words = table.split()
        if len(words) != 2:
            raise SnapshotError(f"nft: {table!r} is neither `FAMILY TABLE` nor `{WHOLE}`")
        # Deleting a table that is not there fails, and adding one that is there does not.
        head = f"add table {table}\ndelete table {table}\n"
        there = f"table {words[0]} {words[1]}" in _run((nft, "list", "tables"), "", why).splitlines()
        text = _run((nft, "list", "table", *words), "", why) if there else ""
    return Kept(load, head + text, (nft, "-c", "-f", "-"))


def _iptables(tool: str, table: str) -> Kept:
    text = _run((_tool(f"{tool}-save"), "-c", "-t", table), "", f"{tool}'s {table} could not be kept")
    if f"*{table}" not in text.splitlines():
        # Nothing is printed of a table that is not loaded, and nothing is what iptables-restore would do.
        if "nf_tables" in _run((_tool(tool), "--version"), "", tool) and shutil.which("nft"):
            return _nft(f"{'ip' if tool == 'iptables' else 'ip6'} {table}")
        text = "".join([f"*{table}\n", *(f":{chain} ACCEPT [0:0]\n" for chain in CHAINS[table]), "COMMIT\n"])
    restore = (_tool(f"{tool}-restore"), "-c", "-w", "10")
    return Kept(restore, text, (*restore, "--test"))


def _own(entry: dict[str, Any]) -> Kept:
    """Commands of the caller's. Where `save` fails, `absent` puts back, if there is such a command."""
    save = shlex.split(entry["save"])
    done = _done(save, "")
    if done.returncode == 0:
        return Kept(tuple(shlex.split(entry["restore"])), done.stdout)
    if entry.get("absent"):
        return Kept(tuple(shlex.split(entry["absent"])), "")
    raise SnapshotError(f"`{entry['save']}` failed, so that state could not be kept: {_words(done)}")


def _name(entry: dict[str, Any]) -> str:
    return next(f"{key} {entry[key]}" for key in ("nft", "iptables", "ip6tables", "save") if entry.get(key))


def _tool(name: str) -> str:
    """Where a program is. Ansible's connection may have no sbin in its PATH."""
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")
    if found is None:
        raise SnapshotError(f"there is no {name} on this host, so what is loaded could not be kept")
    return found


def _run(command: Sequence[str], text: str, why: str) -> str:
    done = _done(command, text)
    if done.returncode != 0:
        raise SnapshotError(f"{why}: {_words(done)}")
    return done.stdout


def _done(command: Sequence[str], text: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command, input=text, capture_output=True, text=True, errors="surrogateescape", timeout=SECONDS
        )
    except subprocess.TimeoutExpired:
        raise SnapshotError(f"`{shlex.join(command)}` did not end within {SECONDS} s") from None
    except OSError as e:
        raise SnapshotError(f"`{shlex.join(command)}`: {e.strerror}") from None


def _words(done: subprocess.CompletedProcess[str]) -> str:
    return (done.stderr.strip() or f"exit status {done.returncode}")[-600:]
