"""What is sent to a host for a recording, and how its answer is read. Knows no transport.

One shell command finds the interpreter and the rights; the program comes on standard input.
"""

from __future__ import annotations

import base64
import binascii
import functools
import json
import re
import secrets
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import items
from .collect.main import MARK
from .collect.mask import mask

if TYPE_CHECKING:
    from collections.abc import Mapping

HERE = Path(__file__).parent
_TOO_OLD = 97
_PYTHONS = (
    "python3 " + " ".join(f"python3.{minor}" for minor in range(15, 5, -1)) + " /usr/libexec/platform-python"
)
NO_PYTHON = "there is no Python 3.6 or newer on the host"

# What a host without Python is asked for beside the questions in launch.sh; nothing that can hold a secret.
_PLAIN_FILES = (
    "/proc/driver/nvidia/version",
    "/sys/module/nvidia/version",
    "/etc/nccl.conf",
    "/run/reboot-required",
    "/proc/sys/kernel/random/boot_id",
)


class NoAnswer(ValueError):
    """The host's output holds no recording; the message says what it holds."""


@dataclass(frozen=True)
class Program:
    """`argv` to run on the host with `stdin`; the answer stands between lines of stdout that have `token`."""

    argv: tuple[str, ...]
    stdin: bytes
    token: str


def program(
    *, sudo: bool = True, sudo_password: str | None = None, questions: Mapping[str, Any] | None = None
) -> Program:
    """The program for one recording, of all items where `questions` names no others.

    `sudo`: become root by `sudo -n` where that works (the action plugin does not want it: Ansible's own
    `become` decides there). With `sudo_password`, sudo is given the password, on standard input only.
    """
    token = secrets.token_hex(8)
    stdin = _source(token, _pack(questions) if questions else _questions())
    rights = "sudo" if sudo else "own"
    if sudo_password is not None:
        rights = "password"
        stdin = sudo_password.encode() + b"\n" + stdin
    filled = {
        "PYTHONS": _PYTHONS,
        "RIGHTS": rights,
        "ELEVATE": (HERE / "elevate.py").read_bytes().hex() if rights == "password" else "none",
        "MARK": MARK,
        "TOKEN": token,
        "TOO_OLD": str(_TOO_OLD),
        "FILES": " ".join(_PLAIN_FILES),
    }
    text = re.sub(r"@([A-Z_]+)@", lambda found: filled[found[1]], _launcher())
    return Program(("/bin/sh", "-c", text), stdin, token)


@functools.cache
def _launcher() -> str:
    lines = [line.strip() for line in (HERE / "launch.sh").read_text(encoding="utf-8").splitlines()]
    return " ".join(line for line in lines if line and not line.startswith("#"))


def sources() -> list[tuple[str, str]]:
    """Name and text of each module of `collect`, each after those that it imports."""
    texts = {path.stem: path.read_text(encoding="utf-8") for path in (HERE / "collect").glob("[a-z]*.py")}
    ordered: list[tuple[str, str]] = []

    def visit(name: str) -> None:
        if name in texts:
            text = texts.pop(name)
            for needed in re.findall(r"(?m)^from \.(\w*) import ([\w, ]+)$", text):
                for module in [needed[0]] if needed[0] else needed[1].split(", "):
                    visit(module)
            ordered.append((name, text))

    for name in sorted(texts):
        visit(name)
    return ordered


@functools.cache
def _packed() -> str:
    return _pack(sources())


@functools.cache
def _questions() -> str:
    return _pack(items.questions())


def _pack(value: Any) -> str:
    return base64.b64encode(zlib.compress(json.dumps(value).encode(), 9)).decode()


def _source(token: str, questions: str) -> bytes:
    """The Python text for `python3 -`; ends with a status of its own where the interpreter cannot run it."""
    return f"""
import sys
try:
    import base64, fcntl, glob, grp, json, pwd, selectors, socket, subprocess, types, zlib
except ImportError:
    sys.exit({_TOO_OLD})

def unpack(text):
    return json.loads(zlib.decompress(base64.b64decode(text)).decode())

package = sys.modules["collect"] = types.ModuleType("collect")
package.__path__ = []
for name, text in unpack("{_packed()}"):
    module = sys.modules["collect." + name] = types.ModuleType("collect." + name)
    module.__package__ = "collect"
    setattr(package, name, module)
    exec(compile(text, "collect/%s.py" % name, "exec"), module.__dict__)
package.main.main(unpack("{questions}"), "{token}")
""".encode()


def answer(output: bytes | str, token: str) -> dict[str, Any]:
    """The document in a host's standard output: {"as_root", "seconds", "items"}.

    Whatever else the host printed (a banner before, a logout message behind, other line ends) is passed over.
    Raises NoAnswer where there is no whole one.
    """
    text = output if isinstance(output, str) else output.decode("utf-8", "replace")
    whole = re.search(rf"{MARK} {token} (\d+)\s(.*?){MARK} {token} end", text, re.DOTALL)
    if whole:
        return _unpacked(whole[2], int(whole[1]))
    if re.search(rf"{MARK} {token} end", text):
        return _from_shell(text, token)
    if f"{MARK} {token}" in text:
        raise NoAnswer("the answer broke off in the middle")
    raise NoAnswer("the host did not run the program")


def _unpacked(body: str, length: int) -> dict[str, Any]:
    packed = "".join(body.split())
    if len(packed) != length:
        raise NoAnswer(f"the answer has {len(packed)} characters instead of {length}")
    try:
        document = json.loads(zlib.decompress(base64.b64decode(packed, validate=True)))
    except (binascii.Error, zlib.error, ValueError) as e:
        raise NoAnswer(f"the answer is damaged: {e}") from e
    if not isinstance(document, dict):
        raise NoAnswer("the answer is of another form")
    return document


def _from_shell(text: str, token: str) -> dict[str, Any]:
    """The few answers of a host without a fitting Python; all other items were not asked."""
    found: dict[str, dict[str, Any]] = {item.name: {"not_asked": NO_PYTHON} for item in items.ITEMS}
    user = ""
    for name, digits in re.findall(rf"{MARK} {token} (\S+) ([0-9a-f]+)\s", text):
        said, _, status = (
            bytes.fromhex(digits).decode("utf-8", "backslashreplace").rstrip("\n").rpartition("=")
        )
        rc = int(status) if status.isdigit() else 1
        if name == "rights":
            user = said.strip()
        elif name == "python":
            found[name] = (
                {"rc": 0, "stdout": said, "stderr": ""} if said.startswith("Python ") else {"missing": True}
            )
        elif name.startswith("file:") or name in ("os-release", "mdstat"):
            found[name] = {"text": mask(said)}
        elif rc == 127:
            found[name] = {"missing": True}
        else:
            found[name] = {"rc": rc, "stdout": mask(said), "stderr": ""}
    found["rights"] = {"rc": 0, "stdout": json.dumps({"user": user, "root": user == "root"}), "stderr": ""}
    return {"as_root": user == "root", "seconds": 0.0, "items": found}
