"""Controls of what happens to GPUs: Xid events of this boot, lowered clocks, the PCIe link, MIG."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from ..facts.known import Unknown, Unsupported
from .gpu import cards
from .model import (
    Disrupts,
    Judged,
    Severity,
    Status,
    Verdict,
    control,
    failed,
    passed,
    skipped,
    unknown,
    warned,
)
from .reading import called, gpus, is_vm, read, shared_kernel, table

if TYPE_CHECKING:
    from ..facts.kernel_log import Xid
    from ..facts.smi_model import Gpu

_SHOWN = 8
_UNLISTED = {"class": "note", "says": "not in the table of this version"}
_ACTION_CHANGED = 154


@control(
    "gpu.xid",
    "The kernel's log has no fault of a GPU since the boot",
    severity=Severity.HIGH,
    disrupts=Disrupts.REBOOT,
)
def xid(host: Judged) -> Verdict:
    if (why := shared_kernel(host)) is not None:
        return why
    log = host.facts.kernel_log
    if isinstance(log, Unknown):
        # Without a card there is nothing to look for; without a bus to look at, the log's silence counts.
        ours = cards(host)
        return ours if isinstance(ours, Verdict) and ours.status is Status.SKIP else unknown(log)
    events = [event for event in log.xids if not _cleared(event, log.xids)]
    if not events:
        ours = cards(host)
        if isinstance(ours, Verdict) and ours.status is Status.SKIP:
            return ours
        if not log.complete:
            return unknown("the log has lost its beginning, so what is not in it may have been")
        return passed("none", expected="none")
    return _judged(events)


def _judged(events: list[Xid]) -> Verdict:
    data = table("xids")
    counted = Counter((event.code, event.bus_id, event.switch, _class(event)) for event in events)
    told, advice, worst = [], {}, Status.WARN
    for (code, bus, switch, kind), times in counted.items():
        about = data["classes"][kind]
        row = {"says": "NVSwitch"} if switch else data["codes"].get(code, _UNLISTED)
        name = "SXid" if switch else "Xid"
        text = f"{name} {code} ({row['says']}) at {bus or 'an address not told'}"
        told.append((about["status"] != "fail", text + (f", {times} times" if times > 1 else "")))
        if about["status"] == "fail":
            worst = Status.FAIL
        advice[about["advice"]] = about["status"] != "fail"
    told.sort(key=lambda entry: entry[0])
    said = [text for _, text in told]
    judge = failed if worst is Status.FAIL else warned
    serious = [text for text, light in advice.items() if not light] or list(advice)
    lines = tuple(f"{_when(e)}Xid {e.code}: {e.says}".rstrip(": ") for e in events[-_SHOWN:])
    return judge("none", "; ".join(said[:4]), advice=" ".join(serious), evidence=(*said[:_SHOWN], *lines))


def _class(event: Xid) -> str:
    data = table("xids")
    if event.switch:
        # The text begins `Fatal, Link 30 …` or `Non-fatal, Link 30 …`.
        weight = data["switches"]["fatal" if event.says.lower().startswith("fatal") else "other"]
        return str(data["switches"]["codes"].get(event.code, weight))
    mild = data["nonfatal"]
    if mild["first"] <= event.code <= mild["last"] and re.search(
        r"\bnon-?fatal\b", event.says, re.IGNORECASE
    ):
        return str(mild["class"])
    if event.code == _ACTION_CHANGED:
        asked = re.findall(r"\(([^()]*)\)", event.says)
        return str(data["recovery"].get(asked[-1] if asked else "", data["codes"][event.code]["class"]))
    return str(data["codes"].get(event.code, _UNLISTED)["class"])


def _cleared(event: Xid, events: tuple[Xid, ...]) -> bool:
    """A change of the recovery action counts only while it is the last, and asks for something."""
    if event.code != _ACTION_CHANGED or event.switch:
        return False
    last = [e for e in events if e.code == _ACTION_CHANGED and e.bus_id == event.bus_id][-1]
    return event is not last or event.says.rstrip().endswith("(None)")


def _when(event: Xid) -> str:
    return "" if event.seconds is None else f"{event.seconds:.0f} s after the boot: "


@control(
    "gpu.throttle",
    "No GPU is slowed down by heat or by its power supply",
    severity=Severity.MEDIUM,
    needs=("gpu.answers",),
)
def throttle(host: Judged) -> Verdict:
    given = gpus(host)
    if isinstance(given, Verdict):
        return given
    reasons = read(given, lambda gpu: gpu.throttle)
    known = table("health")["throttle"]
    found = [(gpu, name) for gpu, now in reasons.known for name in sorted(now.active & set(known))]
    if not found:
        return reasons.wanting or passed(f"none on {len(reasons.known)} GPUs")
    judge = failed if any(known[name]["status"] == "fail" for _, name in found) else warned
    return judge(
        "clocks as the load asks for",
        "; ".join(f"{called(gpu)}: {name}" for gpu, name in found[:4]),
        advice=" ".join(dict.fromkeys(known[name]["says"] for _, name in found)),
        evidence=tuple(f"{called(gpu)}: {name}, {_heat(gpu)}" for gpu, name in found[:_SHOWN]),
    )


def _heat(gpu: Gpu) -> str:
    heat, draw = gpu.temperature.gpu, gpu.power.draw
    return f"{heat if isinstance(heat, int) else '?'} C, {draw if isinstance(draw, float) else '?'} W"


@control(
    "gpu.pcie-link",
    "A GPU that works has its whole PCIe link",
    severity=Severity.MEDIUM,
    needs=("gpu.answers",),
)
def pcie_link(host: Judged) -> Verdict:
    given = gpus(host)
    if isinstance(given, Verdict):
        return given
    widths = read(given, lambda gpu: gpu.pcie.width)
    most = read(given, lambda gpu: gpu.pcie.width_max)
    if (wanting := widths.wanting or most.wanting) is not None:
        return wanting
    short = [text for gpu in given if (text := _short(gpu))]
    busy = [text for gpu in given if _busy(gpu) and (text := _short(gpu))]
    expected = "the generation and width that slot and card can both do"
    if busy and is_vm(host):
        return skipped(f"a virtual machine sees its hypervisor's link: {busy[0]}")
    if busy:
        return warned(
            expected,
            "; ".join(busy[:4]),
            advice="Look at seating, riser and the BIOS setting of that slot.",
            evidence=tuple(busy),
        )
    if short:
        return skipped(f"idle cards may lower their link: {'; '.join(short[:4])}")
    return passed(f"whole on {len(given)} GPUs", expected=expected)


def _busy(gpu: Gpu) -> bool:
    least = table("health")["busy"]["utilization"]
    return isinstance(gpu.utilization, int) and gpu.utilization >= least


def _short(gpu: Gpu) -> str:
    link = gpu.pcie
    told = [
        f"{name} {now} of {most}"
        for name, now, most in (
            ("generation", link.generation, link.generation_max),
            ("width", link.width, link.width_max),
        )
        if isinstance(now, int) and isinstance(most, int) and now < most
    ]
    return f"{called(gpu)}: {', '.join(told)}" if told else ""


@control(
    "gpu.mig",
    "MIG is as it will be after the next reset, and its slices can be used",
    severity=Severity.LOW,
    disrupts=Disrupts.REBOOT,
    needs=("gpu.answers",),
)
def mig(host: Judged) -> Verdict:
    given = gpus(host)
    if isinstance(given, Verdict):
        return given
    modes = read(given, lambda gpu: gpu.mig.mode.current)
    pending = read(given, lambda gpu: gpu.mig.mode.pending)
    if (wanting := modes.wanting) is not None:
        return wanting
    if pending.unclear is not None:
        return unknown(pending.unclear)
    later = {gpu.index: mode for gpu, mode in pending.known}
    waits = [gpu for gpu, mode in modes.known if later.get(gpu.index, mode) is not mode]
    if waits:
        return warned(
            "the mode that is set",
            f"{', '.join(map(called, waits))}: another mode is set and waits for a reset",
            advice="Reset the GPU without users, or reboot.",
        )
    on = [gpu for gpu, mode in modes.known if mode]
    empty = [gpu for gpu in on if not gpu.mig.devices]
    if empty:
        return warned(
            "slices on each GPU in MIG mode",
            f"{', '.join(map(called, empty))}: MIG mode without a slice, so no job can use it",
            advice="Create slices (`nvidia-smi mig -cgi PROFILE -C`), or switch MIG off.",
        )
    slices = tuple(f"{called(gpu)}: {len(gpu.mig.devices)} slices" for gpu in on)
    said = f"on for {len(on)} of {len(given)} GPUs" if on else f"off on {len(modes.known)} GPUs"
    return passed(said, evidence=slices)


def has_mig(gpu: Gpu) -> bool:
    """A GPU in MIG mode takes no part in NVLink (NVIDIA MIG User Guide, "Application Considerations")."""
    mode = gpu.mig.mode.current
    return mode is True if not isinstance(mode, Unsupported | Unknown) else False
