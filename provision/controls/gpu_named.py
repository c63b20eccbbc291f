"""Controls of what a profile names for its GPUs beside clocks: power limit, compute mode, ECC and MIG."""

from __future__ import annotations

from ..planners import gpu_settings as planner
from .gpu import ROLE, cards, report
from .model import Disrupts, Judged, Verdict, control, failed, passed, skipped


@control(
    "gpu.limits",
    "Power limit and compute mode are those that the profile names",
    role=ROLE,
    needs=("gpu.answers", "gpu.persistence"),
)
def limits(host: Judged) -> Verdict:
    return _judged(host, "gpu_settings_power_limit", "gpu_settings_compute_mode")


@control(
    "gpu.modes",
    "ECC and MIG are those that the profile names, now and after a reboot",
    role=ROLE,
    disrupts=Disrupts.REBOOT,
    needs=("gpu.answers", "gpu.persistence"),
)
def modes(host: Judged) -> Verdict:
    return _judged(host, "gpu_settings_ecc", "gpu_settings_mig")


def _judged(host: Judged, *variables: str) -> Verdict:
    ours = cards(host)
    if isinstance(ours, Verdict):
        return ours
    asked = {name: host.profile[name] for name in variables if host.profile[name] is not None}
    if not asked:
        return skipped(f"{' and '.join(variables)} are not set: left alone")
    smi = report(host)
    if isinstance(smi, Verdict):
        return smi
    expected = "; ".join(f"{name}: {value}" for name, value in asked.items())
    whole = planner.wanted(host.facts, host.profile, host.stack)
    if whole.refused:
        return failed(expected, whole.refused, mendable=not whole.locked)
    wrong, notes, given_to = [], [], 0
    for index, by_variable in whole.named.items():
        named = [by_variable[name] for name in asked]
        wrong += [f"GPU {index}: {text}" for given in named for text in (*given.wrong, *given.waits)]
        notes += [f"GPU {index}: {text}" for given in named for text in given.unsupported]
        given_to += any(given.set for given in named)
    if wrong:
        return failed(expected, "; ".join(wrong[:4]), evidence=(*wrong, *notes))
    if not given_to:
        return skipped("; ".join(notes))
    return passed(
        f"as named on {given_to} of {len(whole.named)} GPUs", expected=expected, evidence=tuple(notes)
    )
