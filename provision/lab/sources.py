"""Debian's archive as this machine reaches it: read from the machine's own apt settings, at run time."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from ..errors import Usage
from .shell import run

RELEASES = ("bookworm", "trixie")
COMPONENTS = ("main", "contrib", "non-free", "non-free-firmware")
APT = Path("/etc/apt")
SOURCES_VARIABLE = "GPU_PROVISION_LAB_SOURCES"
# What of apt's settings says how the archive is reached; the rest (caches, translations) is each host's own.
REACH = re.compile(
    r"^Acquire::(https?::|Check-Valid-Until|Check-Date|ForceIPv|Retries|AllowReleaseInfoChange)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Source:
    """One archive and one suite of it, e.g. `bookworm-security`."""

    uri: str
    suite: str

    def line(self, keyring: Path | None = None) -> str:
        signed = f"[signed-by={keyring}] " if keyring else ""
        return f"deb {signed}{self.uri} {self.suite} {' '.join(COMPONENTS)}"


def for_release(release: str, *, etc: Path = APT, os_release: Path = Path("/etc/os-release")) -> list[Source]:
    """The archives of a Debian release: this machine's own, with that release's name in their suites.

    Only Debian's own suites count (release, updates, security); archives of third parties are left out.
    The file named by GPU_PROVISION_LAB_SOURCES is read in place of the machine's sources.
    Raises Usage where there are none.
    """
    named = os.environ.get(SOURCES_VARIABLE)
    codenames = RELEASES if named else _debian(os_release)
    if named:
        found = read_text(Path(named).read_text())
    else:
        files = [etc / "sources.list", *sorted((etc / "sources.list.d").glob("*.list"))]
        files += sorted((etc / "sources.list.d").glob("*.sources"))
        found = [
            entry for file in files if file.is_file() for entry in read_text(file.read_text(errors="replace"))
        ]
    sources: list[Source] = []
    for uri, suite, components, signed_by in found:
        match = re.fullmatch(r"([a-z]+)(-updates|-security|/updates)?", suite)
        if not match or match[1] not in codenames or "main" not in components:
            continue
        if signed_by and "debian-archive" not in signed_by:
            continue
        source = Source(uri.rstrip("/"), release + (match[2] or "").replace("/updates", "-security"))
        if source not in sources:
            sources.append(source)
    if not any(source.suite == release for source in sources):
        raise Usage(
            "this machine's apt sources name no Debian archive to build lab hosts from",
            do=f"set {SOURCES_VARIABLE} to a file with the apt sources of a Debian mirror",
        )
    return sources


def read_text(text: str) -> list[tuple[str, str, tuple[str, ...], str]]:
    """Entries of an apt sources file in either form (sources.list(5)): URI, suite, components, signed-by."""
    if re.search(r"^\s*Types\s*:", text, re.IGNORECASE | re.MULTILINE):
        return _read_deb822(text)
    return _read_lines(text)


def _read_lines(text: str) -> list[tuple[str, str, tuple[str, ...], str]]:
    entries = []
    for line in text.splitlines():
        match = re.match(r"\s*deb\s+(?:\[(?P<options>[^\]]*)\]\s+)?(?P<rest>.+)", line.split("#")[0])
        if not match:
            continue
        words = match["rest"].split()
        if len(words) < 3:
            continue
        signed = re.search(r"signed-by=(\S+)", match["options"] or "", re.IGNORECASE)
        entries.append((words[0], words[1], tuple(words[2:]), signed[1] if signed else ""))
    return entries


def _read_deb822(text: str) -> list[tuple[str, str, tuple[str, ...], str]]:
    entries = []
    for stanza in re.split(r"\n\s*\n", "\n".join(x for x in text.splitlines() if not x.startswith("#"))):
        fields: dict[str, str] = {}
        name = ""
        for line in stanza.splitlines():
            if line[:1].isspace():
                fields[name] = fields.get(name, "") + "\n" + line.strip()
            elif ":" in line:
                name, _, value = line.partition(":")
                name = name.strip().lower()
                fields[name] = value.strip()
        enabled = fields.get("enabled", "yes").lower() not in ("no", "false", "0")
        if not enabled or "deb" not in fields.get("types", "").split():
            continue
        components = tuple(fields.get("components", "").split())
        for uri in fields.get("uris", "").split():
            entries += [
                (uri, x, components, fields.get("signed-by", "")) for x in fields.get("suites", "").split()
            ]
    return entries


def apt_settings() -> str:
    """apt.conf text: how this machine reaches the archive (proxies, certificates, dates)."""
    lines = []
    for line in run(["apt-config", "dump"]).stdout.splitlines():
        name, _, value = line.partition(" ")
        if REACH.match(name) and not name.endswith("::") and value not in ('"";', ""):
            lines.append(f"{name} {value}")
    for scheme in ("http", "https"):
        proxy = os.environ.get(f"{scheme}_proxy") or os.environ.get(f"{scheme}_proxy".upper())
        if proxy and not any(line.startswith(f"Acquire::{scheme}::Proxy ") for line in lines):
            lines.append(f'Acquire::{scheme}::Proxy "{proxy}";')
    return "".join(line + "\n" for line in lines)


def certificates() -> Path | None:
    """The machine's bundle of certificate authorities, which https archives are checked against."""
    for candidate in (os.environ.get("SSL_CERT_FILE"), "/etc/ssl/certs/ca-certificates.crt"):
        if candidate and Path(candidate).is_file():
            return Path(candidate)
    return None


def _debian(os_release: Path) -> tuple[str, ...]:
    """The code name of this machine's release where it is Debian; other archives do not serve."""
    fields = dict(line.split("=", 1) for line in os_release.read_text().splitlines() if "=" in line)
    if fields.get("ID", "").strip("\"'") != "debian":
        return ()
    return (fields.get("VERSION_CODENAME", "").strip("\"'"),)
