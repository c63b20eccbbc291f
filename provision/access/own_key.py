"""The user's own public key: the one that plain `ssh` to a host would offer first."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import Usage
from ..transport.options import destination, options

if TYPE_CHECKING:
    from ..transport.target import Target

PUBLIC_KEY = re.compile(r"(?:ssh-|ecdsa-sha2-|sk-)[\w@.-]+ [A-Za-z0-9+/=]{40,}(?: .*)?")


def own_key(target: Target) -> str:
    """One line of public key, from the identity that was named, the agent, or ssh_config's identities.

    Raises Usage where there is none, with how to make one.
    """
    named = [target.identity] if target.identity else []
    for path in named:
        key = _of_file(Path(path).expanduser())
        if key is None:
            raise Usage(
                f"{path} has no public key beside it, and it could not be read from the key", host=target.name
            )
        return key
    candidates = [*_in_agent(), *(key for path in _identities(target) if (key := _of_file(path)) is not None)]
    if candidates:
        return candidates[0]
    raise Usage(
        "there is no SSH key to install there",
        host=target.name,
        do="make one with `ssh-keygen -t ed25519`, or name one with ansible_ssh_private_key_file",
    )


def checked(text: str) -> str:
    """A public key as one line. Raises Usage where the text is none, a private key above all."""
    line = text.strip()
    if "PRIVATE KEY" in line or "\n" in line or not PUBLIC_KEY.fullmatch(line):
        raise Usage("that is no public key: one line is wanted, as in id_ed25519.pub")
    return line


def _of_file(path: Path) -> str | None:
    beside = path.with_name(f"{path.name}.pub")
    if beside.is_file():
        return checked(beside.read_text())
    if not path.is_file():
        return None
    said = _ask(["ssh-keygen", "-y", "-P", "", "-f", str(path)])
    return checked(said) if said else None


def _in_agent() -> list[str]:
    return [line for line in _ask(["ssh-add", "-L"]).splitlines() if PUBLIC_KEY.fullmatch(line.strip())]


def _identities(target: Target) -> list[Path]:
    said = _ask(["ssh", "-G", *options(target), *destination(target)])
    found = (shlex.split(line)[1:] for line in said.splitlines() if line.startswith("identityfile "))
    return [Path(words[0]).expanduser() for words in found if words]


def _ask(argv: list[str]) -> str:
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""
