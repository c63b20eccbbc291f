"""What the kernel's log tells about GPUs: Xid events, GPUs gone or refused, modules rejected, tasks stuck.

Message texts are those of NVIDIA's driver ("NVRM: …"), documented for Xid in NVIDIA's "GPU Debug
Guidelines: XID Errors" and otherwise seen in public bug reports of open-gpu-kernel-modules.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING

from .answers import plain, quote, words
from .known import Unknown
from .pci import bus_id
from .record import record

if TYPE_CHECKING:
    from ..recording.model import Answer

_KEPT = 400


class Refusal(StrEnum):
    """Why the driver leaves a card out, as the kernel's log has it."""

    NEEDS_OPEN = "it needs the open kernel modules"
    NEEDS_PROPRIETARY = "the open kernel modules do not serve it"
    NOT_SERVED = "this release of the driver does not serve it"
    NO_POWER = "its power cables are not connected"
    NO_ADDRESS_SPACE = "the firmware gave it no address space"


_TIME = re.compile(r"^(?:\w+\s*:\w+\s*: )?\[\s*(\d{1,9}\.\d{1,9})\]")
# `dmesg`, `dmesg -x` and `-T`; `dmesg --time-format iso`; a journal or syslog line.
_STAMPED = re.compile(r"^(?:\w+\s*:\w+\s*: )?\[[^\]]{1,40}\]|^\d{4}-\d\d-\d\dT\d\d:|\bkernel:")
_XID = re.compile(r"(?P<kind>S?Xid) \((?:PCI:)?(?P<bus>[^)]{1,40})\): (?P<code>\d{1,6})(?:,\s*(?P<text>.*))?")
_PROCESS = re.compile(
    r"pid='?(?P<pid>\d{1,10}|<unknown>)'?, name='?(?P<name>[^,']{1,80})'?(?:,\s*(?P<text>.*))?"
)
_FALLEN = re.compile(
    r"The NVIDIA GPU (?P<a>[0-9a-fA-F:.]+)\s+\(PCI ID: [^)]*\)\s+installed in this system has\s+"
    r"fallen off the bus"
    r"|GPU (?P<b>[0-9a-fA-F:.]+): GPU has fallen off the bus"
)
_LEGACY = re.compile(
    r"The NVIDIA (?P<name>.{1,100}?) GPU installed in this system is\s+supported through the NVIDIA "
    r"(?P<branch>\d{2,3})\.xx Legacy driver"
)
_BOUND = re.compile(r"GPU (?P<bus>[0-9a-fA-F:.]+) is already bound to (?P<driver>[\w-]+)")
# Why the driver leaves a card out; the texts are those of nv-pci.c and osinit.c in open-gpu-kernel-modules.
_INSTALLED = r"The NVIDIA GPU (?P<bus>[0-9a-fA-F:.]+)\s+\(PCI ID: [^)]*\)\s+installed in this system\s+"
_LEFT_OUT: tuple[tuple[Refusal, re.Pattern[str]], ...] = (
    (Refusal.NEEDS_OPEN, re.compile(_INSTALLED + r"requires use of the NVIDIA open kernel modules")),
    (Refusal.NEEDS_PROPRIETARY, re.compile(_INSTALLED + r"is not supported by open\s+nvidia\.ko")),
    (Refusal.NOT_SERVED, re.compile(_INSTALLED + r"is not supported by the\s+(?:NVIDIA )?[\w. ]*release")),
    (
        Refusal.NO_POWER,
        re.compile(r"GPU (?P<bus>[0-9a-fA-F:.]+): GPU does not have the necessary power cables connected"),
    ),
    (Refusal.NO_ADDRESS_SPACE, re.compile(r"BAR\d is 0M @ 0x0 \(PCI:(?P<bus>[0-9a-fA-F:.]+)\)")),
)
_STUCK = re.compile(
    r"INFO: task (?P<name>.{1,40}?):(?P<pid>\d{1,10}) blocked for more than (?P<seconds>\d{1,6}) seconds"
)
_GSP = re.compile(r"RmInitAdapter|WPR2|GSP firmware|_kgspBootGspRm|GSP RM", re.IGNORECASE)
_REJECTED = re.compile(
    r"Loading of (?:unsigned )?module.* is rejected|Key was rejected by service|Lockdown: .*unsigned module"
)
_MISMATCH = re.compile(
    r"API mismatch: the client.{0,40}? has the version (?P<client>[\d.]+\d),?.{0,200}?"
    r"kernel module has the version (?P<module>[\d.]+\d)"
)


@record
class Xid:
    """One Xid event of a GPU, or SXid event of an NVSwitch; `seconds` since boot where that was printed."""

    code: int
    bus_id: str | None
    seconds: float | None
    pid: int | None
    process: str | None
    says: str
    switch: bool


@record
class KernelLog:
    """`complete` is False where the log lost its beginning: then what is not in it may have been.

    `stuck` holds (task, pid), `legacy` (GPU, last branch that serves it), `bound_elsewhere` (bus id,
    kernel driver), `api_mismatch` (client's version, module's version), `left_out` (bus id, why).
    """

    complete: bool
    xids: tuple[Xid, ...]
    fallen: tuple[str, ...]
    legacy: tuple[tuple[str, int], ...]
    bound_elsewhere: tuple[tuple[str, str], ...]
    stuck: tuple[tuple[str, int], ...]
    module_rejected: tuple[str, ...]
    gsp_failures: tuple[str, ...]
    api_mismatch: tuple[tuple[str, str], ...]
    nvrm: tuple[str, ...]
    left_out: tuple[tuple[str, Refusal], ...] = ()


def kernel_log(answer: Answer) -> KernelLog | Unknown:
    if answer.silence is not None:
        return Unknown(answer.silence, answer.item)
    if answer.rc not in (0, None):
        return Unknown(f"dmesg ended with status {answer.rc}: {quote(words(answer))}", answer.item)
    lines = plain(answer.text).splitlines()
    stamped = [line for line in lines if _STAMPED.search(line)]
    if not stamped:
        return Unknown(
            f"dmesg: no line of a kernel's log: {quote(answer.text) or 'it is empty'}", answer.item
        )
    nvrm = [line for line in lines if "NVRM:" in line or "SXid" in line]
    # One message may span several lines, each with its own prefix.
    joined = " ".join(" ".join(line.partition("NVRM:")[2].replace("NVRM:", " ").split()) for line in nvrm)
    begin = _TIME.match(stamped[0])
    fallen = dict.fromkeys(filter(None, (bus_id(m["a"] or m["b"]) for m in _FALLEN.finditer(joined))))
    xids = tuple(filter(None, (_xid(line) for line in nvrm)))
    for xid in xids:
        if xid.code == 79 and not xid.switch and xid.bus_id:
            fallen[xid.bus_id] = None
    return KernelLog(
        complete=not answer.cut
        and (begin is None or float(begin[1]) < 1.0)
        and not {"\0", "\ufffd"} & set(answer.text),
        xids=xids,
        fallen=tuple(fallen),
        legacy=tuple((m["name"].removeprefix("NVIDIA "), int(m["branch"])) for m in _LEGACY.finditer(joined)),
        bound_elsewhere=tuple((bus_id(m["bus"]) or m["bus"], m["driver"]) for m in _BOUND.finditer(joined)),
        stuck=tuple((m["name"], int(m["pid"])) for m in map(_STUCK.search, lines) if m),
        module_rejected=tuple(line.strip() for line in lines if _REJECTED.search(line))[:_KEPT],
        gsp_failures=tuple(line.strip() for line in nvrm if _GSP.search(line))[:_KEPT],
        api_mismatch=tuple((m["client"], m["module"]) for m in _MISMATCH.finditer(joined)),
        nvrm=tuple(line.strip() for line in nvrm[-_KEPT:]),
        left_out=tuple(
            dict.fromkeys(
                (bus_id(m["bus"]) or m["bus"], why) for why, text in _LEFT_OUT for m in text.finditer(joined)
            )
        ),
    )


def _xid(line: str) -> Xid | None:
    found = _XID.search(line)
    if not found:
        return None
    text = found["text"] or ""
    process = _PROCESS.match(text)
    time = _TIME.match(line)
    pid = process["pid"] if process else None
    name = process["name"] if process else None
    return Xid(
        int(found["code"]),
        bus_id(found["bus"]),
        float(time[1]) if time else None,
        int(pid) if pid and pid.isdecimal() else None,
        name if name != "<unknown>" else None,
        ((process["text"] or "") if process else text).strip(),
        found["kind"] == "SXid",
    )
