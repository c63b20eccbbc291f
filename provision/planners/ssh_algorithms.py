"""Which of OpenSSH's algorithms a hardened host no longer offers.

Lists are given as removals from OpenSSH's own defaults (`-PATTERN,…`, sshd_config(5)), so that what a later
release adds is offered without a change here. The judgements are those of ssh-audit 3.9
(https://github.com/jtesta/ssh-audit, src/ssh_audit/ssh2_kexdb.py).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase


@dataclass(frozen=True)
class Removal:
    """Patterns that one keyword of sshd_config takes out, and why."""

    keyword: str
    patterns: tuple[str, ...]
    why: str

    @property
    def line(self) -> str:
        return f"{self.keyword} -{','.join(self.patterns)}"

    def left_in(self, effective: str) -> tuple[str, ...]:
        """Algorithms of an effective list (comma-separated, as `sshd -T` prints it) that should be gone."""
        return tuple(a for a in effective.split(",") if any(fnmatchcase(a, p) for p in self.patterns))


_HOST_KEYS = Removal(
    "HostKeyAlgorithms", ("ecdsa-*", "sk-ecdsa-*"), "NIST's curves are suspected of a backdoor"
)
_CIPHERS = Removal("Ciphers", ("*-cbc", "3des-*", "arcfour*"), "CBC and RC4 leak plaintext")
_MACS = Removal(
    "MACs",
    ("hmac-sha1*", "hmac-md5*", "umac-64*", "umac-128@openssh.com", "hmac-sha2-256", "hmac-sha2-512"),
    "SHA-1 is broken, 64-bit tags are small, encrypt-and-MAC is weaker than encrypt-then-MAC",
)
_KEY_EXCHANGE = ("diffie-hellman-*", "ecdh-sha2-*")
# Without these only hybrids with a post-quantum part are left; sntrup761 is a default since OpenSSH 8.5.
CLASSIC = "curve25519-sha256*"
_POST_QUANTUM_SINCE = (8, 5)


def removals(version: tuple[int, int], *, old_clients: bool) -> tuple[Removal, ...]:
    """What a server of OpenSSH `version` is told to leave out.

    `old_clients` keeps curve25519-sha256 for clients without post-quantum key exchange. A server that
    has none itself keeps it anyway: with nothing to agree on, nobody would get in.
    """
    keep = old_clients or version < _POST_QUANTUM_SINCE
    exchange = _KEY_EXCHANGE if keep else (*_KEY_EXCHANGE, CLASSIC)
    why = "NIST's curves and small groups are weak"
    if not keep:
        why += "; a recorded session must not be readable once there are quantum computers"
    return (Removal("KexAlgorithms", exchange, why), _CIPHERS, _MACS, _HOST_KEYS)


def openssh_version(package: str) -> tuple[int, int] | None:
    """Upstream version in a package version: `1:9.2p1-2+deb12u10` gives (9, 2); None for another form."""
    found = re.match(r"(?:\d+:)?(\d+)\.(\d+)", package)
    return (int(found[1]), int(found[2])) if found else None
