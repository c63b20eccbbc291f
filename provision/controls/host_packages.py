"""Controls of what work on a host depends on: its archives' keys, free locks, a Python that serves."""

from __future__ import annotations

from ..facts.known import Absent, Unknown
from .model import Judged, Severity, Verdict, control, failed, passed, skipped, unknown, warned

# ansible-core 2.18 and 2.19: support matrix of the Ansible documentation, "Managed node Python".
_OLDEST = (3, 8)
_SHOWN = 6


@control("host.apt-keys", "Each archive is named with one key, in one place", severity=Severity.HIGH)
def apt_keys(host: Judged) -> Verdict:
    """apt refuses all of its sources where one archive has two values of Signed-By."""
    found = host.facts.apt_sources
    if isinstance(found, Unknown):
        return unknown(found)
    if isinstance(found, Absent):
        return skipped("this host has no apt sources")
    keys: dict[tuple[str, str], dict[str, str]] = {}
    for source in found:
        if not source.enabled:
            continue
        for uri in source.uris:
            for suite in source.suites:
                where = f"{source.path}:{source.line}"
                keys.setdefault((uri.rstrip("/"), suite), {})[where] = source.signed_by
    twice = {at: named for at, named in keys.items() if len(set(named.values())) > 1}
    if twice:
        (uri, suite), named = next(iter(twice.items()))
        told = tuple(
            f"{where}: {uri} {suite}, Signed-By {key or 'not set'}"
            for (uri, suite), named in twice.items()
            for where, key in named.items()
        )
        return failed(
            "one value of Signed-By for each archive",
            f"{' and '.join(named)} name {uri} {suite} with different keys",
            advice="apt reads no source at all until then: keep one of them.",
            evidence=told[:_SHOWN],
        )
    return passed(f"{len(keys)} archives")


@control("host.package-lock", "No process holds the locks of dpkg or apt", severity=Severity.LOW)
def package_lock(host: Judged) -> Verdict:
    held = host.facts.apt_locks
    if isinstance(held, Unknown):
        return unknown(held)
    if held:
        told = tuple(f"{lock.path}: process {lock.pid} ({lock.program or 'name not seen'})" for lock in held)
        return warned(
            "free",
            told[0],
            advice="Wait for it, as a run of ours does; neither remove the lock nor end the process.",
            evidence=told[:_SHOWN],
        )
    return passed("free")


@control("host.python", "The host's Python serves Ansible's modules", severity=Severity.LOW)
def python(host: Judged) -> Verdict:
    version = host.facts.python
    if isinstance(version, Unknown):
        return unknown(version)
    expected = f"Python {'.'.join(map(str, _OLDEST))} or newer"
    advice = "Audits go on working; to change this host, install a newer interpreter beside the system's own."
    if isinstance(version, Absent):
        return warned(
            expected,
            "there is no Python",
            advice="Without one hardly anything can be read, and nothing changed: install python3.",
        )
    text = ".".join(map(str, version))
    if version < _OLDEST:
        return warned(expected, f"Python {text}", advice=advice)
    return passed(f"Python {text}", expected=expected)
