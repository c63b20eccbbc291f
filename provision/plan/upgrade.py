"""What an upgrade is refused for before anything is touched, what it shows, and what it has to keep."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..controls.model import Status
from ..facts.known import Absent, Unknown

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from ..controls.model import Finding, Judged
    from ..facts import Facts

ROLES = ("nvidia_driver", "fabric", "cuda")
"""The roles whose packages are moved as one set."""
# A host that fails one of these is mended first: an upgrade would hide the cause, or fail because of it.
_HEALTHY = (
    "host.packages-state",
    "gpu.health",
    "gpu.recovery-action",
    "gpu.xid",
    "gpu.remapped-rows",
    "gpu.count",
)
# What may be otherwise for a while after a move, or says nothing of whether it went well.
_NO_PROOF = ("updates.", "host.reboot-required", "gpu.throttle", "driver.branch-supported")
# Bytes: an initramfs with the driver's firmware, rebuilt beside the old one; packages and a DKMS build.
_ROOM = {"/boot": 128 * 2**20, "/var": 1024 * 2**20, "/usr": 1024 * 2**20}


def refusals(judged: Judged, findings: Sequence[Finding], *, begun: bool, snapshot: bool) -> tuple[str, ...]:
    """Why this host must not be upgraded now. `begun`: an upgrade that stopped half-way is to be finished, so
    what it left half-done is no reason. `snapshot`: a way back is kept.
    """
    found = {f.control: f for f in findings}
    told = [] if begun else [_sick(found[name]) for name in _HEALTHY if _fails(found.get(name))]
    root = found.get("updates.snapshot")
    warned = root is not None and root.status is Status.WARN and not root.waived
    if root and warned and snapshot and not begun and judged.profile["snapshot_required"]:
        told.append(
            f"{_sick(root)}; `--set snapshot_required=false` goes on with packages and settings alone"
        )
    return (*told, *_room(judged.facts))


def notes(judged: Judged) -> tuple[str, ...]:
    """What a person wants to know before agreeing: where the packages come from and who uses the GPUs."""
    told = []
    stack = judged.stack
    if not isinstance(stack, Unknown) and stack.driver is not None:
        told.append(f"driver {stack.driver.version or stack.driver.branch} comes from {stack.driver.source}")
    users = judged.facts.gpu_users
    if isinstance(users, Unknown):
        told.append(f"who uses the GPUs now is not known: {users.reason}")
    elif users:
        told.append(f"on the GPUs now: {', '.join(f'{user.program} ({user.pid})' for user in users)}")
    return tuple(told)


def passing(findings: Sequence[Finding]) -> frozenset[str]:
    """The controls that an upgrade must leave passing."""
    return frozenset(
        f.control for f in findings if f.status is Status.PASS and not f.control.startswith(_NO_PROOF)
    )


def lost(before: Collection[str], findings: Sequence[Finding]) -> tuple[str, ...]:
    """What passed before and fails, or cannot be told any more."""
    bad = (Status.FAIL, Status.UNKNOWN)
    return tuple(
        f"{f.title} ({f.control}): {f.actual or f.status}"
        for f in findings
        if f.control in before and f.status in bad and not f.waived
    )


def _fails(finding: Finding | None) -> bool:
    return finding is not None and finding.status is Status.FAIL and not finding.waived


def _sick(finding: Finding) -> str:
    return f"{finding.title} ({finding.control}): {finding.actual}"


def _room(facts: Facts) -> Iterator[str]:
    space = facts.space
    if isinstance(space, Unknown | Absent):
        return  # the steps that write look by themselves
    for folder, needed in _ROOM.items():
        places = [s for s in space if f"{folder}/".startswith(f"{s.target.rstrip('/')}/")]
        place = max(places, key=lambda s: len(s.target), default=None)
        if place and place.available < needed:
            free, wants = (f"{size / 1e6:.0f} MB" for size in (place.available, needed))
            yield f"{folder} has {free} free, and an upgrade needs {wants}"
