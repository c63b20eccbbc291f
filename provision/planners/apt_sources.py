"""The parts of the distribution's archive that the driver comes from, where the host's sources lack them.

Debian has the driver in contrib and non-free and its firmware in non-free-firmware (Debian 12 release
notes, section 2.2), Ubuntu in restricted and the fabric manager in multiverse. What is missing goes into a
file of our own, with address and key of the host's own entry, so that no entry of the administrator's is
touched and apt finds no two entries that differ in Signed-By ("Conflicting values set for option
Signed-By" ends all use of apt).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ..facts.known import Absent, Unknown

if TYPE_CHECKING:
    from ..facts import Facts
    from ..facts.apt_sources import AptSource

PATH = "/etc/apt/sources.list.d/gpu-provision.sources"
_BASE = ("e2fsprogs", "python3", "linux-image-amd64", "linux-image-arm64", "linux-image-generic")
_POCKETS = ("", "-updates", "-security")


@dataclass(frozen=True)
class _Kind:
    """One distribution's archive: its parts, its keyring, its mirrors' folders, other names of a release."""

    name: str
    components: tuple[str, ...]
    keyring: str
    folders: tuple[str, ...]
    places: tuple[str, ...] = ()


_KINDS = {
    "debian": _Kind(
        "Debian",
        ("contrib", "non-free", "non-free-firmware"),
        "debian-archive",
        ("debian", "debian-security"),
        # The place of a release (stable) is no lasting name, and in use all the same.
        ("stable", "oldstable"),
    ),
    "ubuntu": _Kind("Ubuntu", ("restricted", "multiverse"), "ubuntu-archive", ("ubuntu", "ubuntu-ports")),
}


@dataclass(frozen=True)
class Archive:
    """`text` of our sources file, None where it is not needed; `refused` says why there can be none."""

    text: str | None = None
    refused: str | None = None


def archive(facts: Facts) -> Archive:
    """Our own sources file for the host's Debian or Ubuntu archive."""
    sources, os = facts.apt_sources, facts.os
    if isinstance(os, Unknown):
        return Archive(refused=f"the distribution is not known: {os.reason}")
    kind = _KINDS["ubuntu" if os.code.startswith("ubuntu") else "debian"]
    if isinstance(sources, Unknown):
        return Archive(refused=f"apt's sources cannot be read: {sources.reason}")
    suites = {f"{name}{pocket}" for name in (os.codename, *kind.places) for pocket in _POCKETS}
    listed = () if isinstance(sources, Absent) else sources
    carriers = _carriers(facts)
    theirs = tuple(s for s in listed if s.path != PATH and _of_distribution(s, suites, carriers, kind))
    if not theirs:
        return Archive(refused=f"apt has no source of {kind.name}'s archive for {os.pretty}; add one first")
    stanzas = []
    for source in theirs:
        lacking = tuple(c for c in kind.components if not _has(theirs, source, c))
        if not lacking:
            continue
        if source.signed_by.startswith("a key in"):
            add = f"add `{' '.join(lacking)}` to {source.path}, line {source.line}"
            return Archive(refused=f"{add}: its key stands in the entry itself, which is not copied")
        stanza = _stanza(source, suites, lacking)
        if stanza not in stanzas:
            stanzas.append(stanza)
    return Archive("\n".join([_HEAD, *stanzas]) if stanzas else None)


_HEAD = "# Written by gpu-provision (role nvidia_driver): where the distribution's archive has the driver.\n"


def _of_distribution(
    source: AptSource, suites: set[str], carriers: frozenset[str] | None, kind: _Kind
) -> bool:
    """Whether an entry is of the distribution's own archive. Others use its release names and `main` too."""
    named = source.enabled and "deb" in source.types and "main" in source.components
    if not named or not suites & set(source.suites):
        return False
    return any(_is_archive(source, uri, carriers, kind) for uri in source.uris)


def _is_archive(source: AptSource, uri: str, carriers: frozenset[str] | None, kind: _Kind) -> bool:
    address = urlsplit(uri)
    if address.scheme == "cdrom":
        return False
    if carriers is None:
        keyring = not source.signed_by or kind.keyring in source.signed_by
        return keyring and address.path.strip("/").rpartition("/")[2] in kind.folders
    security = all(suite.endswith("-security") for suite in source.suites)
    hosts = {urlsplit(carrier).netloc for carrier in carriers}
    return uri.rstrip("/") in carriers or (security and address.netloc in hosts)


def _carriers(facts: Facts) -> frozenset[str] | None:
    """Addresses that carry packages which only a distribution's own archive has; None where none is known."""
    if isinstance(facts.policy, Unknown):
        return None
    offers = [facts.policy[name] for name in _BASE if name in facts.policy]
    found = {o.uri.rstrip("/") for offer in offers for v in offer.versions for o in offer.archives(v)}
    return frozenset(found) or None


def _has(sources: tuple[AptSource, ...], like: AptSource, component: str) -> bool:
    """Whether the host's own entries cover a component for the same addresses and suites."""
    return any(
        component in other.components
        and set(like.uris) <= set(other.uris)
        and set(like.suites) <= set(other.suites)
        for other in sources
    )


def _stanza(source: AptSource, suites: set[str], lacking: tuple[str, ...]) -> str:
    lines = [
        "Types: deb",
        f"URIs: {' '.join(uri for uri in source.uris if not uri.startswith('cdrom:'))}",
        f"Suites: {' '.join(suite for suite in source.suites if suite in suites)}",
        f"Components: {' '.join(lacking)}",
    ]
    if source.signed_by:
        lines.append(f"Signed-By: {source.signed_by}")
    return "\n".join(lines) + "\n"
