"""Controls of what roles depend on in the host itself: packages, their sources, and reboots due."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..facts.known import Absent, Unknown
from ..planners import driver_rpm, driver_sources
from .gpu import cards
from .model import Disrupts, Judged, Severity, Verdict, control, failed, passed, skipped, unknown, warned

if TYPE_CHECKING:
    from ..planners.wanted import File

_REBOOT = ("/run/reboot-required", "/var/run/reboot-required")
_SHOWN = 8


@control(
    "host.apt-sources",
    "apt has the sources, keys and pins that the driver comes by",
    role="nvidia_driver",
)
def sources(host: Judged) -> Verdict:
    ours, stack = cards(host), host.stack
    if isinstance(ours, Verdict):
        return ours
    if isinstance(stack, Unknown):
        return unknown(stack)
    if stack.driver is None or driver_rpm.serves(stack.driver):
        return skipped("no driver comes by apt")
    for fact in (host.facts.apt_sources, host.facts.os):
        if isinstance(fact, Unknown):
            return unknown(fact)
    given = driver_sources.supply(host.facts, host.profile, stack.driver)
    expected = f"the archive of {stack.driver.source}'s driver, and nothing that moves it"
    if given.refused:
        return failed(expected, given.refused)
    wrong = []
    for file in given.files:
        now = host.facts.file(file.path)
        if isinstance(now, Unknown):
            return unknown(now)
        if (None if isinstance(now, Absent) else now) != file.text:
            wrong.append(f"{file.path} is {_state(file, now)}")
    for key in given.keys:
        now = host.facts.file(key.path)
        if isinstance(now, Unknown):
            return unknown(now)
        wrong += [f"{key.path} is not there"] if isinstance(now, Absent) else []
    if wrong:
        return failed(expected, wrong[0], evidence=tuple(wrong[:_SHOWN]))
    return passed(f"{len(given.files) + len(given.keys)} files as wanted", expected=expected)


def _state(file: File, now: str | Absent) -> str:
    if isinstance(now, Absent):
        return "not there"
    return "there and no longer needed" if file.text is None else "not as wanted"


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
