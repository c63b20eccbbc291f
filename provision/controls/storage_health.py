"""Controls of the disks themselves: NVMe health, RAID arrays, and disks that nothing uses."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ..facts.known import Absent, Unknown
from .model import Judged, Severity, Status, Verdict, control, failed, passed, skipped, unknown, warned
from .reading import shared_kernel, table

if TYPE_CHECKING:
    from ..facts.disk_health import MdArray, NvmeHealth

_SHOWN = 8
_MDADM = ("/etc/mdadm/mdadm.conf", "/etc/mdadm.conf")


@control("storage.nvme-health", "NVMe disks are healthy by their own account", severity=Severity.HIGH)
def nvme_health(host: Judged) -> Verdict:
    if (why := shared_kernel(host)) is not None:
        return why
    found = host.facts.nvme_health
    if isinstance(found, Unknown):
        return _no_nvme(host) or unknown(found)
    if not found:
        return skipped("there is no NVMe disk")
    bad: list[str] = []
    weak: list[str] = []
    unclear: list[Unknown] = []
    for disk in found:
        worst, told = _disk(disk)
        (bad if worst is Status.FAIL else weak).extend(f"{disk.device}: {text}" for text in told)
        unclear += [
            v for v in (disk.passed, disk.critical_warning, disk.percent_used) if isinstance(v, Unknown)
        ]
    advice = "Copy what is on it and have it replaced."
    if bad:
        return failed("no warning", "; ".join(bad[:4]), advice=advice, evidence=(*bad, *weak)[:_SHOWN])
    if unclear:
        return unknown(unclear[0])
    if weak:
        return warned("no warning", "; ".join(weak[:4]), advice="Look again often, and plan its replacement.")
    worn = max(v for d in found if isinstance(v := d.percent_used, int))
    return passed(f"{len(found)} disks, at most {worn} % of their life used")


def _no_nvme(host: Judged) -> Verdict | None:
    disks = host.facts.disks
    if not isinstance(disks, Unknown) and not any(d.name.startswith("nvme") for d in disks):
        return skipped("there is no NVMe disk")
    return None


def _disk(disk: NvmeHealth) -> tuple[Status, list[str]]:
    data = table("storage")
    told: list[str] = []
    if isinstance(disk.critical_warning, int) and disk.critical_warning:
        bits = [text for bit, text in data["critical_warning"].items() if disk.critical_warning & bit]
        told += bits or [f"critical warning {disk.critical_warning:#x}"]
    if disk.passed is False:
        told.append("it does not pass its own test")
    if (
        isinstance(disk.spare, int)
        and isinstance(disk.spare_threshold, int)
        and disk.spare < disk.spare_threshold
    ):
        told.append(f"{disk.spare} % spare, below {disk.spare_threshold} %")
    used, limits = disk.percent_used, data["nvme"]["percent_used"]
    if isinstance(used, int) and used >= limits["fail"]:
        told.append(f"{used} % of its life used")
    if told:
        return Status.FAIL, told
    if isinstance(used, int) and used >= limits["warn"]:
        told.append(f"{used} % of its life used")
    if isinstance(disk.media_errors, int) and disk.media_errors:
        told.append(f"{disk.media_errors} errors of its medium")
    return Status.WARN, told


@control(
    "storage.raid",
    "RAID arrays and LVM volumes run with all their disks, under the name they were given",
    severity=Severity.HIGH,
)
def raid(host: Judged) -> Verdict:
    if (why := shared_kernel(host)) is not None:
        return why
    found = host.facts.raids
    if isinstance(found, Unknown):
        return unknown(found)
    volumes = host.facts.logical_volumes
    known = () if isinstance(volumes, Unknown) else volumes
    bad = [text for array in found if (text := _array(array))]
    bad += [f"{v.group}/{v.name}: {v.trouble}" for v in known if v.trouble]
    if bad:
        return failed(
            "active, with all members",
            "; ".join(bad[:_SHOWN]),
            advice="`mdadm --detail` and `lvs -a -o +devices,lv_health_status` name what is missing; replace "
            "it before another one fails.",
        )
    if isinstance(volumes, Unknown) and host.facts.recording.asked("lvm"):
        return unknown(volumes)
    if not found:
        return skipped("there is no RAID array")
    nameless = [array.name for array in found if re.fullmatch(r"md_?12[0-9]", array.name)]
    if nameless:
        files = [host.facts.file(path) for path in _MDADM]
        named = any(isinstance(text, str) and re.search(r"^\s*ARRAY\s", text, re.MULTILINE) for text in files)
        silent = any(isinstance(text, Unknown) for text in files) and not any(
            isinstance(text, str | Absent) for text in files
        )
        says = "" if silent or named else f", and {_MDADM[0]} names no array"
        return warned(
            "the name that it was made with",
            f"{', '.join(nameless)} is a name of last resort{says}",
            advice="Write `mdadm --detail --scan` to mdadm.conf, then rebuild the initramfs; mount by UUID.",
        )
    return passed(", ".join(f"{a.name} ({a.level}, {len(a.members)} members)" for a in found[:_SHOWN]))


def _array(array: MdArray) -> str:
    if not array.active:
        return f"{array.name} is not active"
    if not array.degraded:
        return ""
    gone = f", {', '.join(array.failed)} failed" if array.failed else ""
    return f"{array.name} ({array.level}) runs with {array.working} of {array.wanted} members{gone}"


@control("storage.free-disks", "What each disk holds is known", severity=Severity.LOW)
def free_disks(host: Judged) -> Verdict:
    """Free is a disk that is known to be empty; one that holds anything is told with all that is on it."""
    if (why := shared_kernel(host)) is not None:
        return why
    disks = host.facts.disks
    if isinstance(disks, Unknown):
        return unknown(disks)
    if not disks:
        return skipped("this host shows no disk")
    free, idle, unread = [], [], []
    for disk in disks:
        holds = host.facts.contents(disk.path)
        if isinstance(holds, Unknown):
            unread.append(holds)
        elif not holds:
            free.append(disk.by_id[0] if disk.by_id else disk.path)
        elif not any(d.mountpoints for d in disk.walk()):
            idle.append(f"{disk.path} is not mounted and holds {'; '.join(holds[:4])}")
    if unread:
        return unknown(unread[0])
    said = f"{len(free)} of {len(disks)} disks are empty"
    return passed(said, evidence=(*(f"empty: {name}" for name in free), *idle)[:_SHOWN])
