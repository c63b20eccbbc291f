"""Proofs from outside by plain OpenSSH, each on its own connection: a key gets in, a password does not."""

from __future__ import annotations

import re
import secrets
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .door import Door

KEY_ONLY = (
    "PubkeyAuthentication=yes",
    "PreferredAuthentications=publickey",
    "PasswordAuthentication=no",
    "KbdInteractiveAuthentication=no",
)
# In batch mode OpenSSH types no password: it asks which ways are offered and names them as it gives up. That
# is one attempt, and a cheap one: sshd counts failures by source (PerSourcePenalties, sshd_config(5)).
PASSWORD_ONLY = (
    "PubkeyAuthentication=no",
    "HostbasedAuthentication=no",
    "GSSAPIAuthentication=no",
    "PreferredAuthentications=password,keyboard-interactive",
)
# Learn the server's other host keys through the one that is known (ssh_config(5)). OpenSSH writes known_hosts
# anew for it, and of two that do so at once one is lost: for one host at need, not as a rule.
LEARN_KEYS = "UpdateHostKeys=yes"

_DENIED = re.compile(r"Permission denied \(([^)]*)\)")
_NOISE = re.compile(r"^(\*\*|Warning: Permanently added|debug\d:|Connection to .* closed)")


@dataclass(frozen=True)
class Proof:
    """What one fresh connection showed. `says` is for a person and uses OpenSSH's own words.

    `offered` are the ways of logging in that the server named, where it named any. `reached` is False
    where no server answered at all, so that nothing was shown about the way it lets people in. `uid` is
    whom a login got in as.
    """

    holds: bool
    says: str
    offered: tuple[str, ...] = ()
    reached: bool = True
    uid: int | None = None


def login(door: Door, *, timeout: float = 40.0, learn_keys: bool = False, become: str = "") -> Proof:
    """Log in with a key alone and run a command there; its answer shows that it was run.

    `become` is put before the command (`sudo -n `), to prove that this account may become root.
    """
    word = secrets.token_hex(8)
    argv = door.argv(f"{become}echo {word} && id -u", *KEY_ONLY, last=[LEARN_KEYS] if learn_keys else ())
    done = _run(argv, timeout)
    if done is None:
        return Proof(False, f"no answer within {timeout:.0f} s", reached=False)
    said = done.stdout.split()
    if done.returncode == 0 and word in said:
        uid = said[said.index(word) + 1 :]
        return Proof(True, "a fresh login with a key alone works", uid=int(uid[0]) if uid else None)
    words = _words(done.stderr)
    offered = _offered(done.stderr)
    if done.returncode == 255:
        return Proof(False, words or "OpenSSH gave no reason", offered, reached=_answered(words, offered))
    if done.returncode == 0:
        return Proof(False, "the key gets in but runs a command of its own (a forced command), not ours")
    return Proof(False, f"the key gets in, but `{become}echo` failed: {words or done.returncode}")


def password_refused(door: Door, *, timeout: float = 40.0) -> Proof:
    """Ask to be let in with a password, once, and be refused. Holds only if the server itself says so."""
    done = _run(door.argv("true", *PASSWORD_ONLY), timeout)
    if done is None:
        return Proof(False, f"no answer within {timeout:.0f} s", reached=False)
    words = _words(done.stderr)
    if done.returncode == 0:
        return Proof(False, "the server let us in with neither key nor password")
    offered = _offered(done.stderr)
    if not offered:
        return Proof(False, words or "OpenSSH gave no reason", reached=_answered(words, offered))
    typed = [way for way in offered if way in ("password", "keyboard-interactive")]
    if typed:
        return Proof(False, f"the server still offers {' and '.join(typed)}", offered)
    return Proof(True, f"a password is refused; the server offers {', '.join(offered)} only", offered)


def _run(argv: list[str], timeout: float) -> subprocess.CompletedProcess[str] | None:
    try:
        return subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=timeout
        )
    except subprocess.TimeoutExpired:
        return None
    except OSError as e:
        return subprocess.CompletedProcess(argv, 255, "", f"{argv[0]}: {e.strerror}")


def _offered(stderr: str) -> tuple[str, ...]:
    found = _DENIED.findall(stderr)
    return tuple(way for way in found[-1].split(",") if way) if found else ()


def _answered(words: str, offered: tuple[str, ...]) -> bool:
    return bool(offered) or "Permission denied" in words or "Host key verification failed" in words


def _words(stderr: str) -> str:
    """OpenSSH's reason: its last lines, without banners and notices."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip() and not _NOISE.match(line)]
    return " / ".join(lines[-3:])[-500:]
