"""Controls of mounts: that they are there, by names that last, and that a lost disk stops no boot."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ..facts.known import Absent, Unknown
from .model import Disrupts, Judged, Severity, Verdict, control, failed, passed, skipped, unknown, warned
from .reading import table
from .storage_place import another

if TYPE_CHECKING:
    from ..facts.mounts import FstabEntry

FSTAB = "/etc/fstab"
_SHOWN = 8
# Mounts that the system itself needs: without them there is no boot to save.
_SYSTEM = frozenset(
    ("/", "/boot", "/boot/efi", "/efi", "/usr", "/var", "/tmp", "/var/tmp", "/var/log", "none", "swap")
)
_NOT_DISKS = frozenset(
    ("swap", "proc", "sysfs", "tmpfs", "devpts", "cgroup2", "debugfs", "bind", "none", "overlay")
)
_NETWORK = frozenset(
    ("nfs", "nfs4", "cifs", "lustre", "ceph", "beegfs", "glusterfs", "9p", "virtiofs", "fuse.sshfs")
)
# Names that the kernel gives in the order in which it finds disks, and the path that a slot has.
_SWAPPED = re.compile(
    r"/dev/(nvme\d|sd[a-z]|hd[a-z]|md\d|dm-\d|mmcblk\d|bcache\d|nbd\d)\w*|/dev/disk/by-(path|diskseq)/.+"
)
_VIRTUAL = re.compile(r"/dev/(vd[a-z]|xvd[a-z])\w*")


def _entries(host: Judged) -> tuple[FstabEntry, ...] | Verdict:
    """The lines of fstab that mount file systems of this host's own disks."""
    found = host.facts.fstab
    if isinstance(found, Unknown):
        return unknown(found)
    if isinstance(found, Absent):
        return skipped(f"there is no {FSTAB}")
    return tuple(e for e in found if e.fstype not in _NOT_DISKS and "bind" not in e.options)


def _data(entries: tuple[FstabEntry, ...]) -> tuple[FstabEntry, ...]:
    return tuple(e for e in entries if e.target not in _SYSTEM and e.target.startswith("/"))


@control(
    "storage.data-mounts",
    "Each data mount of fstab is mounted now",
    severity=Severity.HIGH,
)
def data_mounts(host: Judged) -> Verdict:
    entries, mounts = _entries(host), host.facts.mounts
    if isinstance(entries, Verdict):
        return entries
    wanted = tuple(
        e for e in _data(entries) if "noauto" not in e.options and "x-systemd.automount" not in e.options
    )
    if not wanted:
        return skipped(f"{FSTAB} has no data mount")
    if isinstance(mounts, Unknown):
        return unknown(mounts)
    there = {mount.target.rstrip("/"): mount for mount in mounts}
    gone = [e for e in wanted if e.target.rstrip("/") not in there]
    if gone:
        hidden = " nofail hides it: what is written there goes to the root disk." if _nofail(gone[0]) else ""
        return failed(
            "mounted",
            "; ".join(f"{e.target} is not mounted" for e in gone[:4]),
            advice=f"`findmnt --verify` and `systemctl status` of the mount say why.{hidden}",
            evidence=tuple(f"{FSTAB}:{e.line}: {e.source} {e.target} {e.fstype}" for e in gone[:_SHOWN]),
        )
    other = [text for e in wanted if (text := another(host, e, there[e.target.rstrip("/")]))]
    if other:
        return failed(
            "what fstab names",
            "; ".join(other[:4]),
            advice="After the next boot another file system is there, or none: write what `blkid` tells of "
            "the disk that is meant.",
        )
    locked = [e for e in wanted if "ro" in there[e.target.rstrip("/")].options and "ro" not in e.options]
    if locked:
        return failed(
            "mounted as asked for",
            "; ".join(f"{e.target} is read-only" for e in locked),
            advice="The kernel does that after errors of the disk: look at dmesg and at the disk's health.",
        )
    return passed(", ".join(e.target for e in wanted[:_SHOWN]))


@control(
    "storage.stable-names",
    "Mounts name their disks by what lasts, not by the kernel's order",
    severity=Severity.HIGH,
)
def stable_names(host: Judged) -> Verdict:
    entries = _entries(host)
    if isinstance(entries, Verdict):
        return entries
    entries = tuple(e for e in entries if e.fstype not in _NETWORK)
    swapped = [e for e in entries if _SWAPPED.fullmatch(e.source)]
    virtual = [e for e in (*entries, *_swaps(host)) if _named_by_order(e)]
    expected = "UUID=, LABEL=, PARTUUID=, /dev/mapper or /dev/disk/by-id"
    shown = tuple(f"{FSTAB}:{e.line}: {e.source} {e.target}" for e in (*swapped, *virtual))
    advice = "Two disks may swap names at any boot: write UUID= (`blkid`) in its place."
    if swapped:
        named = "; ".join(f"{e.target} is {e.source}" for e in swapped[:4])
        return failed(expected, named, advice=advice, evidence=shown[:_SHOWN])
    if virtual:
        named = "; ".join(f"{e.target} is {e.source}" for e in virtual[:4])
        return warned(expected, named, advice=advice, evidence=shown[:_SHOWN])
    return (
        passed(f"{len(entries)} mounts", expected=expected) if entries else skipped(f"{FSTAB} mounts no disk")
    )


def _swaps(host: Judged) -> tuple[FstabEntry, ...]:
    found = host.facts.fstab
    return () if isinstance(found, Unknown | Absent) else tuple(e for e in found if e.fstype == "swap")


def _named_by_order(entry: FstabEntry) -> bool:
    """Names that a hypervisor gives in a fixed order as a rule, and swap, of which no data is lost."""
    kernels = entry.fstype == "swap" and _SWAPPED.fullmatch(entry.source)
    return bool(_VIRTUAL.fullmatch(entry.source) or kernels)


@control(
    "storage.nofail",
    "A data disk that is lost does not stop the boot",
    severity=Severity.HIGH,
)
def nofail(host: Judged) -> Verdict:
    entries = _entries(host)
    if isinstance(entries, Verdict):
        return entries
    # What is mounted over the network belongs to remote-fs.target, which the boot does not wait for.
    local = (e for e in _data(entries) if e.fstype not in _NETWORK and "_netdev" not in e.options)
    wanted = [e for e in local if "noauto" not in e.options]
    if not wanted:
        return skipped(f"{FSTAB} has no data mount of a disk")
    bare = [e for e in wanted if not _nofail(e)]
    if not bare:
        return passed(f"nofail on {len(wanted)} mounts")
    # Where the disk is missing already, the next boot is the one that ends in the emergency shell.
    mounts = host.facts.mounts
    there = None if isinstance(mounts, Unknown) else {mount.target for mount in mounts}
    gone = [] if there is None else [e for e in bare if e.target not in there]
    told = "; ".join(f"{e.target} has no nofail" for e in bare[:4])
    judge = failed if gone else warned
    return judge(
        "nofail and x-systemd.device-timeout on data mounts",
        told + (f"; {', '.join(e.target for e in gone)} is missing now" if gone else ""),
        advice="Without it a missing disk ends the boot in the emergency shell, out of reach: add "
        "nofail,x-systemd.device-timeout=30s.",
        evidence=tuple(
            f"{FSTAB}:{e.line}: {e.source} {e.target} {','.join(e.options)}" for e in bare[:_SHOWN]
        ),
    )


def _nofail(entry: FstabEntry) -> bool:
    return "nofail" in entry.options or "x-systemd.automount" in entry.options


@control(
    "storage.full", "Each file system has room left", severity=Severity.MEDIUM, disrupts=Disrupts.NOTHING
)
def full(host: Judged) -> Verdict:
    found = host.facts.space
    if isinstance(found, Unknown):
        return unknown(found)
    data = table("storage")
    seen: dict[str, tuple[float, str]] = {}
    for fs in found:
        if fs.fstype in data["not_judged"] or fs.size <= 0:
            continue
        left = 100 * fs.available / fs.size
        text = f"{fs.target} has {left:.0f} % of {fs.size / 2**30:.0f} GiB left"
        if fs.inodes and fs.inodes_free is not None and 100 * fs.inodes_free / fs.inodes < left:
            left = 100 * fs.inodes_free / fs.inodes
            text = f"{fs.target} has {left:.0f} % of its {fs.inodes} inodes left"
        # One file system may be mounted at several places: it is told once.
        seen.setdefault(fs.source if fs.source.startswith("/") else fs.target, (left, text))
    short = sorted(entry for entry in seen.values() if entry[0] < data["room"]["warn"])
    if not seen:
        return skipped("no local file system to judge")
    if not short:
        return passed(f"{len(seen)} file systems with {data['room']['warn']} % or more left")
    judge = failed if short[0][0] < data["room"]["fail"] else warned
    return judge(
        f"{data['room']['warn']} % left",
        "; ".join(text for _, text in short[:4]),
        advice="`du -xh --max-depth=2` shows what fills it; on a full disk packages end half-way.",
    )
