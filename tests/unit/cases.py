"""The cases of tests/recordings/cases, and the complete healthy recording that they are laid over."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import date
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from provision.profile.compose import compose
from provision.recording.model import Recording
from provision.runs.look import judge

if TYPE_CHECKING:
    from collections.abc import Iterable

    from provision.controls.model import Finding

RECORDINGS = Path(__file__).parent.parent / "recordings"
CASES = sorted(path.parent for path in (RECORDINGS / "cases").glob("*/wanted.yml"))
HEALTHY = Recording.from_json((RECORDINGS / "healthy" / "debian12-a100.json").read_text(encoding="utf-8"))
TODAY = date(2026, 11, 30)
# What the healthy host was converged with.
VARIABLES: dict[str, Any] = {"nvidia_driver_source": "debian", "gpu_settings_clocks": "max"}

# Controls that say what another answer tells, and that do not know of it once that answer is lost; a control
# of the answer's own says that it is. Of a fault that only the kernel's log told there is no other trace, and
# packages that a plan is refused for are still installed.
TOLD_ELSEWHERE: dict[str, frozenset[str]] = {
    "dmesg": frozenset({"driver.modules-flavour", "driver.supports-gpus", "gpu.health"}),
    "secure-boot": frozenset({"driver.installed", "driver.pinned"}),
}


def told_elsewhere(items_: Iterable[str]) -> frozenset[str]:
    """What may look better once these answers are lost."""
    return frozenset().union(*(TOLD_ELSEWHERE.get(item, frozenset()) for item in items_))


def judged(recording: Recording, **variables: Any) -> dict[str, Finding]:
    """Findings by control."""
    profile = compose("test", {}, {}, {**VARIABLES, **variables})
    return {found.control: found for found in judge(recording, profile, TODAY).findings}


@cache
def baseline() -> dict[str, Finding]:
    return judged(HEALTHY)


def load(case: Path, name: str) -> dict[str, Any]:
    text = (case / name).read_text(encoding="utf-8")
    return dict(yaml.safe_load(text))


def items(case: Path) -> dict[str, Any]:
    """The case's items. One that says how it differs from the healthy host's is made from that.

    `edit` replaces text, `edit_re` patterns, `append` adds lines at the end.
    """
    return {name: _made(name, answer) for name, answer in load(case, "items.yml").items()}


def _made(name: str, answer: dict[str, Any]) -> dict[str, Any]:
    if not {"edit", "edit_re", "append"} & set(answer):
        return answer
    made = dict(HEALTHY.items[name])
    key = "text" if "text" in made else "stdout"
    for old, new in answer.get("edit", ()):
        assert old in made[key], f"{name}: the healthy host's answer has no {old!r}"
        made[key] = made[key].replace(old, new)
    for pattern, new in answer.get("edit_re", ()):
        made[key], count = re.subn(pattern, new, made[key])
        assert count, f"{name}: the healthy host's answer has no {pattern!r}"
    made[key] += answer.get("append", "")
    return made


def with_cards(count: int, name: str) -> dict[str, Any]:
    """The healthy host's nvidia-smi and bus with so many cards of another name."""
    smi, bus = dict(HEALTHY.items["nvidia-smi.query"]), dict(HEALTHY.items["pci"])
    first = re.search(r"\t<gpu id=.*?</gpu>\n", smi["stdout"], re.DOTALL)
    assert first is not None
    head, tail = smi["stdout"][: first.start()], "</nvidia_smi_log>\n"
    devices = json.loads(bus["stdout"])
    ours = [d for d in devices if d["vendor"] == "10de" and d["class"].startswith("03")]
    others = [d for d in devices if d not in ours]
    cards = []
    for index in range(count):
        card = (
            first[0].replace("NVIDIA A100-SXM4-80GB", name).replace(":03:00.0", f":{0xA0 + index:02X}:00.0")
        )
        cards.append(card.replace("-000000000001<", f"-{index + 1:012}<"))
        others.append({**ours[0], "address": f"0000:{0xA0 + index:02x}:00.0"})
    smi["stdout"] = re.sub(r"(<attached_gpus>)\d+", rf"\g<1>{count}", head) + "".join(cards) + tail
    return {"nvidia-smi.query": smi, "pci": {**bus, "stdout": json.dumps(others)}}


def alone(case: Path) -> Recording:
    """The case's own items and nothing else."""
    return Recording("gpu01", HEALTHY.taken, True, 0.4, items(case))


def below(case: Path) -> Recording:
    """The healthy host that the case is laid over."""
    cards = load(case, "wanted.yml").get("cards")
    return replace(HEALTHY, items={**HEALTHY.items, **(with_cards(**cards) if cards else {})})


def laid_over(case: Path) -> Recording:
    healthy = below(case)
    return replace(healthy, items={**healthy.items, **items(case)})
