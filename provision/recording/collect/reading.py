"""Small readers of /proc and /sys. None of them raises where a file is not there."""

import json
import os

from .mask import mask

MYPY = False
if MYPY:
    from typing import Any, Dict, Iterator, List, Optional, Tuple


FILE_LIMIT = 256 * 1024


def read(path: str, limit: int = FILE_LIMIT) -> str:
    """A small file's text without its last newline. Raises OSError."""
    with open(path, "rb") as file:
        return file.read(limit).decode("utf-8", "backslashreplace").rstrip("\n")


def peek(path: str) -> "Optional[str]":
    try:
        return read(path).strip()
    except OSError:
        return None


def number(text: "Optional[str]") -> "Optional[int]":
    try:
        return int(text or "", 0)
    except ValueError:
        return None


def link(path: str) -> "Optional[str]":
    """The last part of what a symbolic link points at."""
    try:
        return os.path.basename(os.readlink(path))
    except OSError:
        return None


def names(folder: str) -> "List[str]":
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def processes() -> "Iterator[Tuple[int, str, str]]":
    """(pid, name, state letter) of each process that we may see."""
    for entry in names("/proc"):
        if entry.isdigit():
            text = peek("/proc/" + entry + "/stat")
            if text and ")" in text:
                name, rest = text[text.index("(") + 1 :].rsplit(")", 1)
                yield int(entry), name, rest.split()[0]


def command_line(pid: int) -> str:
    text = peek("/proc/%d/cmdline" % pid) or ""
    return mask(text.replace("\0", " ").strip())


def age(pid: int) -> float:
    text = peek("/proc/%d/stat" % pid) or ""
    uptime = (peek("/proc/uptime") or "0").split()[0]
    try:
        return float(uptime) - int(text.rsplit(")", 1)[1].split()[19]) / os.sysconf("SC_CLK_TCK")
    except (IndexError, ValueError):
        return 0.0


def in_kernel(*modules: str) -> bool:
    """True where one of the modules is loaded or built in, or the kernel cannot load modules at all."""
    if not os.path.exists("/proc/modules"):
        return True
    if any(os.path.isdir("/sys/module/" + module) for module in modules):
        return True
    built_in = peek("/lib/modules/%s/modules.builtin" % os.uname().release) or ""
    return any("/%s.ko" % module in built_in for module in modules)


def as_json(value: "Any") -> "Dict[str, Any]":
    """An answer in the form of a command that printed JSON."""
    return {"rc": 0, "stdout": json.dumps(value), "stderr": ""}
