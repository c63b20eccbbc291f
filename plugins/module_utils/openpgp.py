# Copyright (c) the gpu-provision authors
# SPDX-License-Identifier: Apache-2.0
"""The fingerprints of the keys in an armored OpenPGP file (RFC 9580, sections 4.2, 5.5.4 and 6).

Minimal hosts have no gpg, and apt takes any key that a file holds: what was fetched is looked at first.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re

_BLOCK = re.compile(
    r"-----BEGIN PGP PUBLIC KEY BLOCK-----\r?\n(?:[^\r\n]+\r?\n)*\r?\n(.+?)\r?\n(?:=[A-Za-z0-9+/]{4}\r?\n)?"
    r"-----END PGP PUBLIC KEY BLOCK-----",
    re.S,
)
_PUBLIC_KEY = 6


class NotAKey(Exception):
    """The text is no armored public key that can be read; holds what is wrong."""


def fingerprints(text):
    """Fingerprints of the primary keys, upper case. Raises NotAKey where there is none that is whole."""
    blocks = _BLOCK.findall(text)
    if not blocks:
        raise NotAKey("it has no PGP public key block")
    found = []
    for block in blocks:
        try:
            data = base64.b64decode("".join(block.split()), validate=True)
        except binascii.Error as e:
            raise NotAKey("its key block is damaged (%s)" % e) from e
        found += [_fingerprint(body) for tag, body in _packets(data) if tag == _PUBLIC_KEY]
    if not found:
        raise NotAKey("it holds no primary key")
    return found


def _fingerprint(body):
    if body[:1] != b"\x04":
        raise NotAKey("its key is of version %d, and this knows version 4" % (body[0] if body else 0))
    return hashlib.sha1(b"\x99" + len(body).to_bytes(2, "big") + body).hexdigest().upper()


def _packets(data):
    """(tag, body) of each packet, in either format of their headers."""
    at = 0
    while at < len(data):
        first = data[at]
        if not first & 0x80:
            raise NotAKey("its key block is damaged (no packet at byte %d)" % at)
        if first & 0x40:
            tag, (size, at) = first & 0x3F, _new_length(data, at + 1)
        else:
            width = 1 << (first & 3)
            tag, size = (first >> 2) & 15, int.from_bytes(data[at + 1 : at + 1 + width], "big")
            at += 1 + width
        if at + size > len(data):
            raise NotAKey("its key block is cut short")
        yield tag, data[at : at + size]
        at += size


def _new_length(data, at):
    first = data[at] if at < len(data) else 0
    if first < 192:
        return first, at + 1
    if first < 224:
        return ((first - 192) << 8) + data[at + 1] + 192, at + 2
    return int.from_bytes(data[at + 1 : at + 5], "big"), at + 5
