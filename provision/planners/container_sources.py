"""Where the container toolkit's packages come from, and the retired repositories that go.

A source of somebody else's with the same address is used as it is: two entries that differ in Signed-By end
all use of apt (NVIDIA/libnvidia-container issue 194).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..facts.known import Absent, Unknown
from .docker_engine import names
from .nvidia_repository import data
from .wanted import File, Key

if TYPE_CHECKING:
    from ..facts import Facts
    from ..facts.apt_sources import AptSource
    from ..profile.model import Profile

PATH = "/etc/apt/sources.list.d/gpu-provision-container-toolkit.sources"
KEY = "/etc/apt/keyrings/gpu-provision-container-toolkit.asc"
_ARMOUR = "-----BEGIN PGP PUBLIC KEY BLOCK-----"
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True)
class Sources:
    """`files` of ours and of the retired repositories. `keys` are to be fetched: none where its text is among
    the files, or none is needed."""

    files: tuple[File, ...] = ()
    keys: tuple[Key, ...] = ()
    refused: str | None = None


def sources(facts: Facts, profile: Profile, *, needed: bool) -> Sources:
    """`needed` is False where all packages are there already: a source is then kept, and none added."""
    found = facts.apt_sources
    if isinstance(found, Unknown):
        return Sources(refused=f"apt's sources cannot be read: {found.reason}")
    listed = () if isinstance(found, Absent) else tuple(s for s in found if s.path != PATH)
    retired = _retired(listed)
    if isinstance(retired, str):
        return Sources(refused=retired)
    gone = tuple(File(path, None) for path in retired)
    address = str(profile["container_toolkit_repository"])
    theirs = any(
        source.enabled and "deb" in source.types and _same(uri, address, facts)
        for source in listed
        for uri in source.uris
    )
    if theirs or not (needed or isinstance(facts.file(PATH), str)):
        return Sources((File(PATH, None), File(KEY, None), *gone))
    key = str(profile["container_toolkit_repository_key"])
    text = _text(address, key)
    if key.lstrip().startswith(_ARMOUR):
        return Sources((File(PATH, text), File(KEY, key.strip() + "\n"), *gone))
    if not key.startswith(("https://", "http://", "file:///")):
        return Sources(
            refused="container_toolkit_repository_key must be the address of the key (https://, http:// or "
            f"file:///) or its text, which begins with {_ARMOUR}"
        )
    # NVIDIA's own is known; what a site serves itself it vouches for by the address.
    known = data()["container_toolkit"]
    fingerprints = (str(known["fingerprint"]),) if key == known["key"] else ()
    return Sources((File(PATH, text), *gone), keys=(Key(KEY, (key,), fingerprints),))


def _text(address: str, key: str) -> str:
    origin = "given by the profile" if key.lstrip().startswith(_ARMOUR) else key
    return (
        f"# Written by gpu-provision (role container_toolkit). The key: {origin}\n"
        f"Types: deb\nURIs: {address}\nSuites: /\nSigned-By: {KEY}\n"
    )


def _same(one: str, other: str, facts: Facts) -> bool:
    return _plain(one, facts) == _plain(other, facts)


def _plain(address: str, facts: Facts) -> str:
    """An address with apt's own variable filled in (sources.list(5)), and without the slash at its end."""
    arch = facts.arch
    own = arch if isinstance(arch, str) else ""
    return address.replace("$(ARCH)", _ARCHITECTURES.get(own, own)).rstrip("/")


def retired_in(source: AptSource) -> bool:
    """Whether an entry names a repository that NVIDIA has retired."""
    return any(mark in uri for uri in source.uris for mark in names()["legacy_repositories"])


def _retired(listed: tuple[AptSource, ...]) -> tuple[str, ...] | str:
    """Files that hold nothing but retired repositories; why there can be none where one holds more."""
    files = dict.fromkeys(source.path for source in listed if retired_in(source))
    for path in files:
        for source in (s for s in listed if s.path == path):
            beside = any(mark in uri for uri in source.uris for mark in names()["legacy_beside"])
            if not retired_in(source) and not beside:
                return (
                    f"{path} names NVIDIA's retired repositories beside another in line "
                    f"{source.line}, which is "
                    "left to you: take the entries of nvidia-docker and nvidia-container-runtime out of it"
                )
    return tuple(files)
