"""Shapes of the variables that say where packages come from, and by which key they are signed."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit


def repository(value: Any) -> str | None:
    """The address of a package repository. A password in it would be readable by every user of the host."""
    try:
        parts = urlsplit(str(value))
    except ValueError as e:
        return f"is no address: {e}"
    if parts.scheme not in ("http", "https", "file") or not (parts.netloc or parts.scheme == "file"):
        return "must be an address that begins with https://, http:// or file://"
    if parts.username or parts.password:
        return "must hold no user or password: apt reads those from /etc/apt/auth.conf.d"
    return None


def public_key(value: Any) -> str | None:
    """An OpenPGP public key in ASCII armor, or nothing."""
    text = str(value or "").strip()
    if not text:
        return None
    if text.startswith("-----BEGIN PGP PUBLIC KEY BLOCK-----"):
        # A blank line ends the armour's head (RFC 9580, section 6.2); YAML folds it away in a plain text.
        whole = "\n\n" in text.replace("\r", "")
        return None if whole else "has lost its lines: in YAML a key stands after `|`, or @FILE reads a file"
    if "PRIVATE KEY" in text:
        return "is a private key; the repository's public key is meant"
    return "must be a public key in ASCII armor (-----BEGIN PGP PUBLIC KEY BLOCK-----); @FILE reads a file"
