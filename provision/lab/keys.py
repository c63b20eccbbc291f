"""The lab's own key, the hosts' keys, and the known_hosts file by which strict checking works at once."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from .shell import lock, run

if TYPE_CHECKING:
    from pathlib import Path

    from .place import Place


def lab_key(place: Place) -> Path:
    """The private key that every lab host lets in as root, made at first use."""
    if not place.key.exists():
        with lock(place.state / "key.lock"):
            if not place.key.exists():
                half = place.state / ".id_ed25519"
                half.unlink(missing_ok=True)
                run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "gpu-provision lab", "-f", half])
                half.with_suffix(".pub").rename(place.key.with_suffix(".pub"))
                half.rename(place.key)
    return place.key


def give(place: Place, root: Path) -> str:
    """Gives a new host its keys, the lab's key and a random root password; returns the password."""
    run(["ssh-keygen", "-q", "-A", "-f", root])
    folder = root / "root/.ssh"
    folder.mkdir(mode=0o700, exist_ok=True)
    authorized = folder / "authorized_keys"
    authorized.write_text(lab_key(place).with_suffix(".pub").read_text())
    authorized.chmod(0o600)
    password = secrets.token_urlsafe(12)
    run(["chroot", root, "chpasswd"], stdin=f"root:{password}\n")
    return password


def learn(place: Place, address: str, root: Path) -> None:
    """Puts a host's public keys into the lab's known_hosts, in place of what stood there for its address."""
    keys = [path.read_text().split()[:2] for path in sorted((root / "etc/ssh").glob("ssh_host_*_key.pub"))]
    _rewrite(place, address, [f"{address} {kind} {key}\n" for kind, key in keys])


def forget(place: Place, address: str) -> None:
    _rewrite(place, address, [])


def _rewrite(place: Place, address: str, lines: list[str]) -> None:
    with lock(place.state / "known_hosts.lock"):
        old = place.known_hosts.read_text().splitlines(keepends=True) if place.known_hosts.exists() else []
        new = [line for line in old if line.split()[:1] != [address]] + lines
        half = place.known_hosts.with_name(".known_hosts")
        half.write_text("".join(new))
        half.replace(place.known_hosts)
