"""The proof that an administrator gets in with a key of ours and may become root there.

Used by an action plugin too, so it imports relatively and uses only the standard library.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from . import fresh

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .door import Door


def prove(
    door: Door, name: str, keys: Sequence[str], *, sudo: bool, timeout: float = 40.0
) -> fresh.Proof | None:
    """Log in as `name` on a fresh connection with a key alone and, with `sudo`, become root there.

    `door` leads to the host as anybody. None where no private key of `keys` can be used here, so that
    nothing could be tried.
    """
    with _identities(door, keys) as identities:
        if not identities:
            return None
        # In front of the door's own options: of identities all count, of other options the first.
        words = [word for identity in identities for word in ("-o", f'IdentityFile="{identity}"')]
        ours = ("-o", f"User={name}", *words, "-o", "IdentitiesOnly=yes")
        way = replace(door, options=(*ours, *door.options))
        proof = fresh.login(way, timeout=timeout, become="sudo -n " if sudo else "")
    if proof.holds and sudo:
        return replace(proof, says="a fresh login with a key alone works, and sudo makes root")
    return proof


@contextmanager
def _identities(door: Door, keys: Sequence[str]) -> Iterator[list[str]]:
    """Files by which ssh finds the private keys of `keys` that can be used without a person.

    They are looked for in ~/.ssh, beside what the door names, and in the agent; for a key of the agent the
    file has the public one.
    """
    wanted = {key.split()[1] for key in keys}
    with tempfile.TemporaryDirectory(prefix="gpu-provision-keys-") as folder:
        private = [path.with_suffix("") for path in sorted(Path("~/.ssh").expanduser().glob("*.pub"))]
        found = [str(path) for path in (*_named(door), *private) if _blob(path) in wanted and _opens(path)]
        for number, line in enumerate(_agent(door)):
            if line.split()[1:2] and line.split()[1] in wanted:
                file = Path(folder) / f"{number}.pub"
                file.write_text(f"{line}\n")
                found.append(str(file))
        yield found


def _named(door: Door) -> list[Path]:
    """Private keys that the door's options name, as `-i FILE` or `-o IdentityFile=FILE`."""
    words = [*door.options, ""]
    given = [after for word, after in pairwise(words) if word == "-i"]
    found = (re.match(r"(?i)identityfile\s*[= ]\s*(.+)", word) for word in words)
    return [Path(path.strip('"')).expanduser() for path in (*given, *(f[1] for f in found if f))]


def _blob(private: Path) -> str:
    """The public key beside a private one, without kind and comment; empty where there is none."""
    try:
        words = private.with_name(f"{private.name}.pub").read_text(encoding="utf-8").split()
    except (OSError, UnicodeDecodeError):
        return ""
    return words[1] if len(words) > 1 else ""


def _opens(private: Path) -> bool:
    """Whether the key is there and asks for no passphrase."""
    return _said(["ssh-keygen", "-y", "-P", "", "-f", str(private)]) != ""


def _agent(door: Door) -> list[str]:
    if any(re.fullmatch(r"(?i)identityagent\s*[= ]\s*none", word) for word in door.options):
        return []
    return _said(["ssh-add", "-L"]).splitlines()


def _said(argv: list[str]) -> str:
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""
