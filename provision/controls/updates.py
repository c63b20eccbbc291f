"""Controls of updates: that they come, that none moves the driver, and that there is a way back."""

from __future__ import annotations

import re

from ..facts.known import Absent, Unknown
from . import driver_set
from .model import Judged, Severity, Verdict, control, passed, skipped, unknown, warned
from .reading import table

_TIMER = "apt-daily-upgrade.timer"
_APT_CONF = "/etc/apt/apt.conf.d/*"
_MAIN = "/etc/apt/apt.conf"
_SWITCH = re.compile(r"APT::Periodic::Unattended-Upgrade\s+\"?([0-9]+[a-z]*|always)\"?\s*;")
_IN_BLOCK = re.compile(r"\bPeriodic\s*\{[^}]*\bUnattended-Upgrade\s+\"?([0-9]+[a-z]*|always)\"?\s*;")
_PACKAGE = "unattended-upgrades"
_OWN_SNAPSHOTS = frozenset(("btrfs", "zfs", "bcachefs"))


def _settings(host: Judged) -> str | Unknown:
    """All of apt's settings in the order in which apt reads them, without comments."""
    found = host.facts.files(_APT_CONF)
    main = host.facts.file(_MAIN)
    if isinstance(found, Unknown):
        return found
    texts = []
    for text in (*(found[path] for path in sorted(found)), main):
        if isinstance(text, Unknown):
            return text
        if isinstance(text, str):
            bare = re.sub(r"(?m)^\s*(//|#(?!clear|include)).*$|/\*.*?\*/", "", text)
            if _breaks_off(bare):
                return Unknown("a file of apt's settings breaks off, or is none", _APT_CONF)
            texts.append(bare)
    return "\n".join(texts)


def _breaks_off(text: str) -> bool:
    """Whether the last setting has no end, which apt refuses."""
    last = (text.strip().splitlines() or [";"])[-1].strip()
    return not last.endswith((";", "}")) and not last.startswith("#")


def unattended(host: Judged) -> bool | Unknown:
    """Whether apt upgrades by itself: the package is there and the last setting that counts says so."""
    packages = host.facts.packages
    if isinstance(packages, Unknown):
        return packages
    if packages.get(_PACKAGE) is None:
        return False
    text = _settings(host)
    if isinstance(text, Unknown):
        return text
    said = [*_SWITCH.finditer(text), *_IN_BLOCK.finditer(text)]
    return bool(said) and max(said, key=lambda match: match.start())[1] not in ("0", "00")


@control("updates.schedule", "Security updates come by themselves", severity=Severity.LOW)
def schedule(host: Judged) -> Verdict:
    packages, units = host.facts.packages, host.facts.units
    if isinstance(packages, Unknown):
        return unknown(packages)
    if packages.manager != "dpkg":
        return skipped("this version knows the schedule of apt alone")
    on = unattended(host)
    if isinstance(on, Unknown):
        return unknown(on)
    if not on:
        return warned(
            "unattended-upgrades, or another schedule",
            "nothing installs security updates",
            advice="Where a schedule of another kind does, this can be waived.",
        )
    if isinstance(units, Unknown):
        return unknown(units)
    timer = None if isinstance(units, Absent) else units.get(_TIMER)
    if timer is None or not timer.exists or not timer.runs:
        return warned(
            f"{_TIMER} is active",
            f"unattended-upgrades is on, and {_TIMER} is {timer.active if timer else 'not there'}",
            advice=f"`systemctl enable --now {_TIMER}`.",
        )
    return passed(f"unattended-upgrades, by {_TIMER}")


@control(
    "driver.unattended-upgrades",
    "No automatic upgrade moves the driver under running jobs",
    severity=Severity.HIGH,
)
def moves_driver(host: Judged) -> Verdict:
    packages, held = host.facts.packages, host.facts.holds
    if isinstance(packages, Unknown):
        return unknown(packages)
    names = [package.name for package in driver_set.members(packages)]
    if not names:
        return skipped("no driver is installed as a package")
    if packages.manager != "dpkg":
        return skipped("this version knows the automatic upgrades of apt alone")
    on = unattended(host)
    if isinstance(on, Unknown):
        return unknown(on)
    if not on:
        return passed("apt upgrades nothing by itself")
    if isinstance(held, Unknown):
        return unknown(held)
    text = _settings(host)
    if isinstance(text, Unknown):
        return unknown(text)
    left_out = _blacklist(text)
    free = [n for n in names if n not in held and not any(re.match(pattern, n) for pattern in left_out)]
    if not free:
        return passed(f"{len(names)} packages held or left out")
    return warned(
        "the driver held, or left out of unattended-upgrades",
        f"{free[0]} and {len(free) - 1} more may be upgraded at night"
        if len(free) > 1
        else f"{free[0]} may be",
        advice="After it, new jobs fail with `Driver/library version mismatch` until a reboot: hold the set.",
        evidence=tuple(free[:8]),
    )


def _blacklist(text: str) -> list[str]:
    """Unattended-Upgrade::Package-Blacklist: regular expressions that match at the beginning of a name."""
    found = []
    for block in re.findall(r"Unattended-Upgrade::Package-Blacklist\s*\{([^}]*)\}", text):
        for pattern in re.findall(r'"([^"]+)"', block):
            try:
                re.compile(pattern)
            except re.error:
                continue
            found.append(pattern)
    return found


@control("updates.snapshot", "An upgrade can be taken back with the root file system", severity=Severity.LOW)
def snapshot(host: Judged) -> Verdict:
    mounts, groups, volumes = host.facts.mounts, host.facts.volume_groups, host.facts.logical_volumes
    if isinstance(mounts, Unknown):
        return unknown(mounts)
    root = next((mount for mount in mounts if mount.target == "/"), None)
    if root is None:
        return unknown("findmnt shows no root file system")
    if root.fstype in _OWN_SNAPSHOTS:
        return passed(f"the root is on {root.fstype}, which takes snapshots itself")
    if not root.source.startswith("/dev/mapper/"):
        return skipped(
            f"the root is on {root.source} ({root.fstype}), not on LVM: packages and settings can be put back"
        )
    for fact in (groups, volumes):
        if isinstance(fact, Unknown):
            return unknown(fact)
    assert not isinstance(groups, Unknown)
    assert not isinstance(volumes, Unknown)
    volume = next((v for v in volumes if v.mapper == root.source), None)
    if volume is None:
        return skipped(f"the root's device {root.source} is no logical volume")
    left = [v for v in volumes if v.group == volume.group and v.origin == volume.name]
    note = "/boot and the EFI partition are outside the volume: a kernel is not taken back with it"
    if left:
        return warned(
            "no snapshot left over",
            f"{left[0].group}/{left[0].name} is a snapshot of the root already",
            advice="A run that failed may have left it: look what it holds, then remove it with lvremove.",
        )
    if volume.pool:
        pool = next((v for v in volumes if v.group == volume.group and v.name == volume.pool), None)
        if pool is None or pool.data_percent is None:
            return unknown(f"how full the thin pool {volume.pool} is was not told")
        if pool.data_percent >= 90:
            return warned("room in the thin pool", f"{pool.name} is {pool.data_percent:.0f} % full")
        return passed(f"thin pool {pool.name}, {pool.data_percent:.0f} % full", evidence=(note,))
    free = groups.get(volume.group)
    if free is None:
        return unknown(f"how much room {volume.group} has was not told")
    least = int(table("storage")["snapshot_room"])
    if free < least:
        return warned(
            f"{least / 2**30:.0f} GiB in the volume group for a snapshot",
            f"{volume.group} has "
            + ("no free extent" if free <= 0 else f"{free / 2**20:.0f} MiB left, which an upgrade fills"),
            advice="An upgrade stops before it touches a package, unless told to go without. Ways: add "
            "a disk to the group, shrink a volume, or take a snapshot at the provider.",
        )
    return passed(f"{free / 2**30:.0f} GiB free in {volume.group}", evidence=(note,))
