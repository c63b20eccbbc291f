"""Controls of what roles depend on in the host itself: packages, their sources, and reboots due."""

from __future__ import annotations

from ..facts.known import Absent, Unknown
from ..planners import apt_sources
from .gpu import cards
from .model import Disrupts, Judged, Severity, Verdict, control, failed, passed, skipped, unknown, warned

_REBOOT = ("/run/reboot-required", "/var/run/reboot-required")
_SHOWN = 8


@control(
    "host.apt-sources",
    "apt's sources have the parts of the archive that the driver comes from",
    role="nvidia_driver",
)
def sources(host: Judged) -> Verdict:
    ours, stack = cards(host), host.stack
    if isinstance(ours, Verdict):
        return ours
    if isinstance(stack, Unknown):
        return unknown(stack)
    if stack.driver is None or stack.driver.source != "debian":
        return skipped("the driver does not come from Debian's archive")
    now = host.facts.file(apt_sources.PATH)
    for fact in (host.facts.apt_sources, host.facts.os, now):
        if isinstance(fact, Unknown):
            return unknown(fact)
    archive = apt_sources.archive(host.facts)
    expected = " ".join(apt_sources.COMPONENTS)
    if archive.refused:
        return failed(expected, archive.refused)
    if (None if isinstance(now, Absent) else now) == archive.text:
        return passed(
            "the host's own sources have them" if archive.text is None else f"{apt_sources.PATH} adds them"
        )
    if archive.text is None:
        return failed(expected, f"{apt_sources.PATH} is there and no longer needed")
    return failed(
        expected, "parts of the archive are missing", evidence=tuple(archive.text.splitlines()[1:_SHOWN])
    )


@control(
    "host.packages-state", "No package is left between two states", severity=Severity.HIGH, required=True
)
def packages_state(host: Judged) -> Verdict:
    packages = host.facts.packages
    if isinstance(packages, Unknown):
        return unknown(packages)
    half = packages.half_configured
    if not half:
        return passed(f"{len(packages.installed)} packages, all whole")
    return failed(
        "every package whole",
        f"{half[0].name} is {half[0].state}" + (f" and {len(half) - 1} more" if len(half) > 1 else ""),
        advice="An interrupted transaction; `dpkg --configure -a` finishes it or says why it cannot.",
        evidence=tuple(f"{p.name} {p.version}: {p.state}" for p in half[:_SHOWN]),
    )


@control("host.reboot-required", "No reboot is due", severity=Severity.LOW, disrupts=Disrupts.REBOOT)
def reboot_required(host: Judged) -> Verdict:
    virtualization = host.facts.virtualization
    if isinstance(virtualization, Unknown):
        return unknown(virtualization)
    if virtualization.shares_kernel:
        return skipped(f"the running kernel is another machine's ({virtualization.kind})")
    found = [host.facts.file(path) for path in _REBOOT]
    if any(isinstance(text, str) for text in found):
        named = host.facts.file(f"{_REBOOT[0]}.pkgs")
        return warned(
            "no reboot due",
            "a package asks for a reboot",
            advice="Drain and reboot.",
            evidence=tuple(sorted(set(named.split()))) if isinstance(named, str) else (),
        )
    unclear = [text for text in found if isinstance(text, Unknown)]
    return unknown(unclear[0]) if unclear else passed("none is due")
